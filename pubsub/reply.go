package pubsub

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// codeUnexpected is the code of an answer that is not the API talking, or that the API cannot mean.
const codeUnexpected = "unexpected_reply"

// judge says what a reply to a request of n messages means; nil means that all n are stored.
func judge(r *wire.Reply, n int, now time.Time) *classify.Error {
	if r.Status == http.StatusOK {
		return judgeSuccess(r, n)
	}
	retryAfter := classify.ParseRetryAfter(r.Header, now)
	doc, ok := parseError(r.Body)
	if !ok || r.Truncated {
		// A proxy, a load balancer, a wrong endpoint: nothing is known of the messages, so nothing is
		// held against them. 429 and 503 mean "slow down" whoever says so.
		e := classify.PubSub(r.Status, "", "the answer is no Google API error document: "+wire.Excerpt(r.Body))
		if e.Class == classify.Transient {
			e.Code = codeUnexpected
		}
		if 300 <= r.Status && r.Status < 400 {
			e.Message = "redirects are not followed, check endpoint: " + e.Message
		}
		e.RetryAfter = retryAfter
		return e
	}
	status := doc.Status
	if status == "" {
		status = classify.GoogleStatus(r.Status)
	}
	e := classify.PubSub(r.Status, status, clip(doc.Message))
	e.RetryAfter = max(retryAfter, doc.RetryDelay)
	if status == "INVALID_ARGUMENT" {
		judgeInvalidArgument(e, doc.Message)
	}
	return e
}

// judgeSuccess counts the message ids of a 200.
func judgeSuccess(r *wire.Reply, n int) *classify.Error {
	ids, ok := countMessageIDs(r.Body)
	if !ok || r.Truncated {
		e := classify.Transientf(service, codeUnexpected, "the answer is no reply to a publish: %s", wire.Excerpt(r.Body))
		e.Status = r.Status
		return e
	}
	if ids != n {
		e := classify.Transientf(service, codeUnexpected, "%d message ids for %d messages", ids, n)
		e.Status = r.Status
		return e
	}
	return nil
}

// judgeInvalidArgument corrects the verdict on the one status whose text decides. INVALID_ARGUMENT is
// what the service answers to a bad message, and only then does bisection end; but it has the same
// status for a request or topic that no message can change. Halving such a request would cost 2n-1
// requests to condemn n innocent messages. The texts are the service's and the emulator's; one that is
// not recognised costs exactly that bound, once per Publish.
func judgeInvalidArgument(e *classify.Error, text string) {
	text = strings.ToLower(text)
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("invalid data in message"), has("schema"):
		// A schema refused a message, and the text may quote it: nothing in it may be taken for one of
		// the texts below. To miss one of those costs requests, to see one where there is none costs
		// innocent messages.
	case strings.HasPrefix(text, "invalid resource name"), // … given (name=projects/…). Refer to …
		has("[topics] name"), has("[projects] name"), // the emulator
		has("argument=topic"), has("argument=name"), has("argument=resource"): // …invalid argument to the service (argument=…)
		e.Class = classify.Config
		e.Message = "check project and topic: " + e.Message
	case has("message storage policy"), has("messagestoragepolicy"), has("persistence region"), has("allowed_persistence"),
		has("in transit") && has("polic"):
		e.Class = classify.Config
		e.Message = "check the topic's message storage policy against the endpoint's region: " + e.Message
	case has("payload size exceeds"), has("payload is too large"):
		// Splitting mends it; a single message that meets it is too large for good.
		e.Message = "configure claim_check.store and lower inline_max_bytes: " + e.Message
	}
}

// splits reports whether a failure of several messages may be the fault of one, so that the request is
// to be halved.
func splits(e *classify.Error) bool { return e.Class == classify.Permanent }

// errorDocument is Google's, https://cloud.google.com/apis/design/errors#http_mapping.
type errorDocument struct {
	Code       int
	Status     string
	Message    string
	RetryDelay time.Duration // google.rpc.RetryInfo
}

// parseError reads an error document. ok is false for what is none: without a code or a status it
// could be any proxy's JSON.
func parseError(body []byte) (doc errorDocument, ok bool) {
	body = bytes.TrimSpace(body)
	if !utf8.Valid(body) {
		return doc, false
	}
	var raw struct {
		Error *struct {
			Code    json.Number     `json:"code"`
			Status  string          `json:"status"`
			Message string          `json:"message"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if len(body) > 0 && body[0] == '[' {
		// The REST front end wraps the error of a call that it streams into an array.
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) != 1 {
			return doc, false
		}
		body = list[0]
	}
	if json.Unmarshal(body, &raw) != nil || raw.Error == nil {
		return doc, false
	}
	code, _ := raw.Error.Code.Int64()
	if code == 0 && raw.Error.Status == "" || !isStatusName(raw.Error.Status) {
		return doc, false
	}
	doc = errorDocument{Code: int(code), Status: raw.Error.Status, Message: raw.Error.Message}
	var details []struct {
		RetryDelay string `json:"retryDelay"`
	}
	if json.Unmarshal(raw.Error.Details, &details) == nil {
		for _, d := range details {
			if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 {
				doc.RetryDelay = min(delay, classify.MaxRetryAfter)
			}
		}
	}
	return doc, true
}

// isStatusName accepts what may be the name of a google.rpc.Code, known to us or not.
func isStatusName(s string) bool {
	return len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r >= utf8.RuneSelf || !isAlphanumeric(byte(r)))
	}) < 0
}

// countMessageIDs counts the non-empty ids of {"messageIds":["…",…]}. The ids themselves are nobody's
// business here, so none of them is copied.
func countMessageIDs(body []byte) (n int, ok bool) {
	var reply struct {
		MessageIDs idCount `json:"messageIds"`
	}
	reply.MessageIDs = -1
	if !utf8.Valid(body) || json.Unmarshal(body, &reply) != nil || reply.MessageIDs < 0 {
		return 0, false
	}
	return int(reply.MessageIDs), true
}

// idCount decodes an array of strings into the number of those that are not empty. An array that holds
// anything else leaves it negative.
type idCount int

// UnmarshalJSON gets valid JSON, so telling a string from the rest is all there is to do.
func (c *idCount) UnmarshalJSON(b []byte) error {
	*c = -1
	if len(b) == 0 || b[0] != '[' {
		return nil
	}
	n := 0
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			start := i + 1
			for i = start; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i > start {
				n++
			}
		case ',', ']', ' ', '\t', '\r', '\n':
		default:
			return nil
		}
	}
	*c = idCount(n)
	return nil
}

// clip bounds the service's text in an error and makes it one printable line.
func clip(s string) string {
	const most = 400
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
