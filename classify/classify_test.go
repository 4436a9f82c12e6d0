package classify

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every code of the table, each with the reason for its class. The dialects test below spells each of
// them in every way that AWS does.
var sqsTable = []struct {
	code string
	want Class
	why  string
}{
	{"InvalidMessageContents", Permanent, "a character SQS cannot hold stays one"},
	{"InvalidParameterValue", Permanent, "a value of the entry"},
	{"InvalidParameterValueException", Permanent, "the same with its suffix"},
	{"MissingParameter", Permanent, "the entry lacks something"},
	{"InvalidAttributeName", Permanent, "the entry's attribute"},
	{"InvalidAttributeValue", Permanent, "the entry's attribute"},
	{"message_too_large", Permanent, "our own check"},
	{"invalid_field", Permanent, "our own check"},

	{"AccessDenied", Config, "rights"},
	{"AccessDeniedException", Config, "rights, JSON spelling"},
	{"QueueDoesNotExist", Config, "only an operator creates queues"},
	{"AWS.SimpleQueueService.NonExistentQueue", Config, "its older name"},
	{"InvalidClientTokenId", Config, "unknown access key"},
	{"UnrecognizedClientException", Config, "unknown access key or token"},
	{"SignatureDoesNotMatch", Config, "wrong secret; the client rules out the clock first"},
	{"InvalidSignatureException", Config, "likewise"},
	{"IncompleteSignature", Config, "malformed credentials"},
	{"InvalidAccessKeyId", Config, "unknown access key"},
	{"MissingAuthenticationToken", Config, "not signed"},
	{"MissingAuthenticationTokenException", Config, "not signed"},
	{"NotAuthorized", Config, "rights"},
	{"OptInRequired", Config, "region not enabled"},
	{"KmsAccessDenied", Config, "rights on the queue's key"},
	{"KMS.AccessDeniedException", Config, "the same, KMS's own spelling"},
	{"KmsDisabled", Config, "the queue's key"},
	{"KmsInvalidState", Config, "the queue's key"},
	{"KmsInvalidKeyUsage", Config, "the queue's key"},
	{"KmsNotFound", Config, "the queue's key"},
	{"KmsOptInRequired", Config, "the queue's key"},
	{"InvalidSecurity", Config, "the endpoint or its policy wants TLS"},
	{"InvalidAddress", Config, "no such queue URL"},
	{"UnsupportedOperation", Config, "the queue cannot do what is configured"},
	{"ResourceNotFoundException", Config, "the queue"},

	{"Throttling", Throttled, "asked to slow down"},
	{"ThrottlingException", Throttled, "asked to slow down"},
	{"Throttled", Throttled, "asked to slow down"},
	{"RequestThrottled", Throttled, "asked to slow down, comes as 403"},
	{"RequestThrottledException", Throttled, "the same with its suffix"},
	{"RequestLimitExceeded", Throttled, "asked to slow down"},
	{"SlowDown", Throttled, "asked to slow down"},
	{"TooManyRequestsException", Throttled, "asked to slow down"},
	{"ServiceUnavailable", Throttled, "asked to slow down"},
	{"KmsThrottled", Throttled, "the queue's key is asked too often"},
	{"KMS.ThrottlingException", Throttled, "the same, KMS's own spelling"},

	{"ExpiredToken", Transient, "a refreshed credential mends it"},
	{"ExpiredTokenException", Transient, "likewise"},
	{"RequestExpired", Transient, "the clock, which the client learns"},
	{"RequestTimeTooSkewed", Transient, "the clock, which the client learns"},
	{"InternalError", Transient, "the service's trouble"},
	{"InternalFailure", Transient, "the service's trouble"},
	{"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", Transient, "our bug, the messages are innocent"},
	{"EmptyBatchRequest", Transient, "our bug"},
	{"AWS.SimpleQueueService.BatchEntryIdsNotDistinct", Transient, "our bug"},
	{"InvalidBatchEntryId", Transient, "our bug"},
	{"AWS.SimpleQueueService.BatchRequestTooLong", Transient, "splitting mends it"},
	{"SomethingNobodyDocuments", Transient, "never dead-letter a good message"},
	{"", Transient, "a 4xx that no document explains"},
}

// dialects spells a code in every way that AWS does.
func dialects(code string) []string {
	bare := strings.TrimPrefix(code, "AWS.SimpleQueueService.")
	out := []string{code, "com.amazonaws.sqs#" + code, code + ";Sender", code + ";Receiver", strings.ToUpper(code), strings.ToLower(code)}
	if bare != "" {
		out = append(out, "AWS.SimpleQueueService."+bare, bare, "com.amazonaws.sqs#"+bare, "AWS.SimpleQueueService."+bare+";Sender")
	}
	if bare != "" && !strings.HasSuffix(bare, "Exception") && !strings.Contains(bare, "_") {
		out = append(out, bare+"Exception", "com.amazonaws.sqs#"+bare+"Exception")
	}
	return out
}

func TestSQSClassOfEveryCodeInEveryDialect(t *testing.T) {
	for _, row := range sqsTable {
		for _, code := range dialects(row.code) {
			for _, status := range []int{200, 400, 403, 404, 500} {
				if got := SQS(status, code, "m").Class; got != row.want {
					t.Errorf("%d %q = %v, want %v: %s", status, code, got, row.want, row.why)
				}
			}
			for _, status := range []int{429, 503} {
				want := row.want
				if want == Transient {
					want = Throttled // a plea to slow down, whatever the code
				}
				if got := SQS(status, code, "m").Class; got != want {
					t.Errorf("%d %q = %v, want %v", status, code, got, want)
				}
			}
		}
	}
}

// The table above and the map must not drift apart: a code without a row has no stated reason.
func TestEveryKnownSQSCodeHasARow(t *testing.T) {
	rows := map[string]bool{}
	for _, row := range sqsTable {
		rows[canonical(row.code)] = true
	}
	for code := range sqsClasses {
		if !rows[code] && code != "toomanyentries" && code != "idsnotdistinct" && code != "nonexistentqueue" {
			t.Errorf("%q has no row in the test's table", code)
		}
	}
}

func TestPubSubClasses(t *testing.T) {
	for _, row := range []struct {
		status int
		code   string
		want   Class
		why    string
	}{
		{400, "INVALID_ARGUMENT", Permanent, "one message was refused"},
		{404, "NOT_FOUND", Config, "topic"},
		{403, "PERMISSION_DENIED", Config, "rights"},
		{401, "UNAUTHENTICATED", Config, "lasting 401"},
		{400, "FAILED_PRECONDITION", Config, "storage policy, key, billing"},
		{400, "invalid_grant", Config, "the issuer refuses the credential"},
		{401, "invalid_client", Config, "likewise"},
		{429, "RESOURCE_EXHAUSTED", Throttled, "quota"},
		{400, "RESOURCE_EXHAUSTED", Throttled, "the code decides"},
		{503, "UNAVAILABLE", Throttled, "503 is a plea to slow down"},
		{429, "", Throttled, "a proxy's plea"},
		{503, "", Throttled, "a proxy's plea"},
		{503, "NOT_FOUND", Config, "a known code outweighs the status"},
		{500, "INTERNAL", Transient, ""},
		{500, "UNAVAILABLE", Transient, ""},
		{504, "DEADLINE_EXCEEDED", Transient, ""},
		{409, "ABORTED", Transient, ""},
		{499, "CANCELLED", Transient, ""},
		{500, "UNKNOWN", Transient, ""},
		{404, "", Transient, "a 404 that is no Google document is a wrong endpoint or a proxy"},
		{400, "", Transient, "a 4xx that no document explains"},
		{400, "OUT_OF_RANGE", Transient, "unknown here"},
	} {
		if got := PubSub(row.status, row.code, "m").Class; got != row.want {
			t.Errorf("%d %q = %v, want %v %s", row.status, row.code, got, row.want, row.why)
		}
	}
}

func TestConfigErrorsOfPubSubGiveAdvice(t *testing.T) {
	for code, word := range map[string]string{
		"NOT_FOUND": "topic", "PERMISSION_DENIED": "roles/pubsub.publisher", "UNAUTHENTICATED": "credential", "FAILED_PRECONDITION": "storage policy",
	} {
		if got := PubSub(400, code, "the service's text").Error(); !strings.Contains(got, word) || !strings.Contains(got, "the service's text") {
			t.Errorf("%s: %q names no %q, or not the service's own text", code, got, word)
		}
	}
}

func TestSplitSQS(t *testing.T) {
	for _, row := range sqsTable {
		want := row.want == Permanent || strings.HasSuffix(row.code, "BatchRequestTooLong")
		if got := SplitSQS(row.code); got != want {
			t.Errorf("SplitSQS(%q) = %v, want %v", row.code, got, want)
		}
	}
}

// The text is a promise to pipelines.
func TestText(t *testing.T) {
	cause := errors.New("connection reset")
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{SQS(400, "InvalidMessageContents", "bad character"), "permanent: sqs 400 InvalidMessageContents: bad character"},
		{SQS(403, "AccessDenied", ""), "config: sqs 403 AccessDenied"},
		{PubSub(429, "RESOURCE_EXHAUSTED", "quota"), "throttled: pubsub 429 RESOURCE_EXHAUSTED: quota"},
		{&Error{Service: "sqs", Err: cause}, "transient: sqs: connection reset"},
		{&Error{Service: "sqs", Message: "lost", Err: cause}, "transient: sqs: lost"},
		{Of(cause), "transient: connection reset"},
		{&Error{}, "transient"},
		{Permanentf("message", "invalid_field", "id: %d bytes", 3), "permanent: message invalid_field: id: 3 bytes"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	for _, class := range Classes {
		if got := (&Error{Class: class, Service: "x"}).Error(); !strings.HasPrefix(got, class.String()+":") {
			t.Errorf("%q does not begin with its class", got)
		}
	}
}

func TestOfFindsTheClassifiedError(t *testing.T) {
	e := SQS(400, "MissingParameter", "")
	if got := Of(fmt.Errorf("while sending: %w", e)); got != e {
		t.Errorf("got %v, want the error inside", got)
	}
	if got := Of(io.EOF); got.Class != Transient || !errors.Is(got, io.EOF) {
		t.Errorf("got %v, want a transient error around io.EOF", got)
	}
	if got := Of(nil); got != nil {
		t.Errorf("got %v, want nil", got)
	}
}

func TestFormattersKeepTheCause(t *testing.T) {
	for _, e := range []*Error{
		Permanentf("s", "c", "x: %w", io.EOF), Configf("s", "c", "x: %w", io.EOF), Throttledf("s", "c", "x: %w", io.EOF), Transientf("s", "c", "x: %w", io.EOF),
	} {
		if !errors.Is(e, io.EOF) {
			t.Errorf("%v lost its cause", e)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"0":                             0,
		"-3":                            0,
		"soon":                          0,
		"999999999999999":               MaxRetryAfter,
		"99999999999999999999999":       0,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 03:03:35 GMT": 0,
		"Sat, 03 Jan 2026 03:04:05 GMT": MaxRetryAfter,
	} {
		h := http.Header{}
		h.Set("Retry-After", v)
		if got := ParseRetryAfter(h, now); got != want {
			t.Errorf("%q = %v, want %v", v, got, want)
		}
	}
}
