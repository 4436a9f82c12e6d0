package localpubsub

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// Refuse answers with Google's error document of a status ("UNAVAILABLE", "NOT_FOUND" …); nothing is
// stored.
func Refuse(status, message string) localcloud.Effect {
	return localcloud.Effect{Error: &localcloud.ErrorReply{Code: status, Message: message}}
}

// Exhausted answers 429 RESOURCE_EXHAUSTED, with a Retry-After of whole seconds unless it is zero.
func Exhausted(retryAfter time.Duration) localcloud.Effect {
	e := Refuse("RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Regional publisher throughput, kB'.")
	if retryAfter > 0 {
		e.Header = http.Header{"Retry-After": {strconv.Itoa(int(retryAfter / time.Second))}}
	}
	return e
}

// LostReply stores the request and cuts the connection without a reply.
func LostReply() localcloud.Effect { return localcloud.Effect{Stored: true, Cut: true} }

// NullReply answers 200 with the JSON document null; nothing is stored.
func NullReply() localcloud.Effect {
	return localcloud.Effect{Reply: rawReply(http.StatusOK, []byte("null"))}
}

// TooFewIDs stores the request and leaves out the first message's id.
func TooFewIDs() localcloud.Effect {
	return localcloud.Effect{Entries: []localcloud.EntryFault{{Do: localcloud.Drop}}}
}

// TooManyIDs stores the request and answers with an id that belongs to none of its messages.
func TooManyIDs() localcloud.Effect {
	return localcloud.Effect{Entries: []localcloud.EntryFault{{Do: localcloud.ExtraUnknown}}}
}
