package gcsstore

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// confirm compares what the server says it holds with what was sent. Nothing of the answer is
// taken on trust but its arithmetic: a proxy's page is a 200 too.
func (s *Store) confirm(reply *wire.Reply, o *claim.Object) error {
	var object struct {
		Bucket string
		Name   string
		Size   json.RawMessage // a string by the API, a number from some emulators
		CRC32C string
		MD5    string `json:"md5Hash"`
	}
	if err := json.Unmarshal(reply.Body, &object); err != nil || object.Name == "" {
		return unexpected(reply, "the answer is no object: "+wire.Excerpt(reply.Body))
	}
	if object.Name != o.Key() || object.Bucket != "" && object.Bucket != s.bucket {
		return unexpected(reply, fmt.Sprintf("the answer is about %s in %s, not about %s in %s", object.Name, object.Bucket, o.Key(), s.bucket))
	}
	size := strings.Trim(string(object.Size), `"`)
	if size != strconv.FormatInt(o.Size(), 10) {
		return mismatch(reply, "size", cmp.Or(size, "none"), strconv.FormatInt(o.Size(), 10))
	}
	switch {
	case object.CRC32C != "":
		if want := sum(o, crc32.New(castagnoli)); object.CRC32C != want {
			return mismatch(reply, "crc32c", object.CRC32C, want)
		}
	case object.MD5 != "":
		if want := sum(o, md5.New()); object.MD5 != want {
			return mismatch(reply, "md5Hash", object.MD5, want)
		}
	default:
		return unexpected(reply, "the answer has neither crc32c nor md5Hash")
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(o *claim.Object, h hash.Hash) string {
	o.Sum(h)
	return base64.StdEncoding.EncodeToString(h.Sum(nil)) // a CRC's Sum is big-endian, as the API wants it
}

func unexpected(reply *wire.Reply, message string) error {
	return &classify.Error{Service: Service, Status: reply.Status, Code: "unexpected_reply", Message: message}
}

func mismatch(reply *wire.Reply, what, got, want string) error {
	return &classify.Error{
		Service: Service, Status: reply.Status, Code: "checksum_mismatch",
		Message: fmt.Sprintf("the object was stored with %s %s, sent with %s", what, got, want),
	}
}

// foreign gives an error of the token source our name.
func foreign(err error) *classify.Error {
	e, ok := errors.AsType[*classify.Error](err)
	if !ok {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return &classify.Error{Service: Service, Message: "given up by the sender: " + err.Error(), Err: err}
		}
		return classify.Transientf(Service, "no_credentials", "%w", err)
	}
	ours := *e
	ours.Service, ours.Err = Service, err
	return &ours
}

// fail gives an answer that is no success its class.
func (s *Store) fail(reply *wire.Reply, key string) *classify.Error {
	e := &classify.Error{
		Class:      classify.OfStatus(reply.Status),
		Service:    Service,
		Status:     reply.Status,
		RetryAfter: classify.ParseRetryAfter(reply.Header, time.Now()),
	}
	var document struct {
		Error struct {
			Code    int
			Message string
			Status  string // newer services' word; rare here
			Errors  []struct{ Reason string }
		}
	}
	if err := json.Unmarshal(reply.Body, &document); err != nil || document.Error.Code == 0 {
		e.Code = "unexpected_reply"
		e.Message = "the answer is no error document: " + wire.Excerpt(reply.Body)
		// The upload server answers some errors in plain text, as proxies answer in HTML. It puts
		// its name to them; without that, the status is no proof of who was speaking.
		if reply.Header.Get("X-Guploader-Uploadid") == "" {
			return e
		}
	} else {
		e.Code = document.Error.Status
		if len(document.Error.Errors) > 0 {
			e.Code = cmp.Or(document.Error.Errors[0].Reason, e.Code)
		}
		e.Message = cmp.Or(document.Error.Message, "no explanation given")
	}
	e.Class = classOf(reply.Status, e.Code)
	if e.Class == classify.Config {
		if advice := s.advice(e, key); advice != "" {
			e.Message += "; " + advice
		}
	}
	return e
}

// classOf is the rule for an error document. The reason decides, the status where the reason isn't
// known. What no rule explains is transient: a wrong guess costs a retry, and never a good hook.
func classOf(status int, reason string) classify.Class {
	switch reason {
	// Quotas come as 403 as well as 429.
	case "rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "quotaExceeded", "RESOURCE_EXHAUSTED",
		"rateLimitExceededUnreg", "backendBusy":
		return classify.Throttled
	case "uploadTooLarge", "objectTooLarge", "payloadTooLarge":
		return classify.Permanent
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		// Credentials, rights, billing, retention, or no bucket: an operator has to act.
		return classify.Config
	}
	return classify.OfStatus(status)
}

// advice says what to mend, where Google's own words don't.
func (s *Store) advice(e *classify.Error, key string) string {
	switch {
	case e.Status == http.StatusNotFound:
		return fmt.Sprintf("make the bucket %s, or correct claim_check.store", s.bucket)
	case e.Status == http.StatusUnauthorized:
		return "the token was refused twice: are the credentials still valid, and do they have a scope for Cloud Storage?"
	case e.Code == "retentionPolicyNotMet" || strings.Contains(e.Message, "storage.objects.delete"):
		return fmt.Sprintf("%s can't be rewritten by a retry, nor could it be checked: grant storage.objects.get on %s", key, s.bucket)
	case e.Status == http.StatusForbidden:
		return fmt.Sprintf("grant storage.objects.create on %s to these credentials", s.bucket)
	}
	return ""
}

// isNoBucket tells a bucket that is missing from an object that is. Both have the reason notFound.
func isNoBucket(e *classify.Error) bool { return strings.Contains(e.Message, "bucket does not exist") }
