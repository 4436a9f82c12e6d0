package pubsub

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

func TestJudgeTellsTheAPIFromWhatIsNotTheAPI(t *testing.T) {
	const html = "<html><body>Bad Gateway</body></html>"
	doc := func(code, status, message string) string {
		return `{"error":{"code":` + code + `,"message":"` + message + `","status":"` + status + `"}}`
	}
	tests := []struct {
		name   string
		status int
		body   string
		want   string // the beginning of the error; empty: stored
	}{
		{"one id for each message", 200, `{"messageIds":["1","2"]}`, ""},
		{"white space and unknown keys", 200, " { \"x\":{\"messageIds\":3}, \"messageIds\" : [ \"1\" ,\"\\\"\" ] }\n", ""},
		{"an id too few", 200, `{"messageIds":["1"]}`, "transient: pubsub 200 unexpected_reply: 1 message ids for 2 messages"},
		{"an id too many", 200, `{"messageIds":["1","2","3"]}`, "transient: pubsub 200 unexpected_reply: 3 message ids"},
		{"an empty id is none", 200, `{"messageIds":["1",""]}`, "transient: pubsub 200 unexpected_reply: 1 message ids"},
		{"ids that are no strings", 200, `{"messageIds":[1,2]}`, "transient: pubsub 200 unexpected_reply"},
		{"a null among them", 200, `{"messageIds":["1",null]}`, "transient: pubsub 200 unexpected_reply"},
		{"a nested array", 200, `{"messageIds":[["1","2"]]}`, "transient: pubsub 200 unexpected_reply"},
		{"no ids", 200, `{}`, "transient: pubsub 200 unexpected_reply"},
		{"null", 200, `null`, "transient: pubsub 200 unexpected_reply"},
		{"ids null", 200, `{"messageIds":null}`, "transient: pubsub 200 unexpected_reply"},
		{"JSON cut in half", 200, `{"messageIds":["1","2"`, "transient: pubsub 200 unexpected_reply"},
		{"200 HTML", 200, html, "transient: pubsub 200 unexpected_reply: the answer is no reply to a publish: <html>"},
		{"200 empty", 200, ``, "transient: pubsub 200 unexpected_reply"},
		{"204", 204, ``, "transient: pubsub 204 unexpected_reply"},
		{"a redirect", 302, ``, "transient: pubsub 302 unexpected_reply: redirects are not followed, check endpoint"},

		{"one bad message", 400, doc("400", "INVALID_ARGUMENT", "schema"), "permanent: pubsub 400 INVALID_ARGUMENT: schema"},
		{"no topic", 404, doc("404", "NOT_FOUND", "Resource not found (resource=t)."), "config: pubsub 404 NOT_FOUND: check project and topic"},
		{"no rights", 403, doc("403", "PERMISSION_DENIED", "no"), "config: pubsub 403 PERMISSION_DENIED: grant roles/pubsub.publisher"},
		{"bad token", 401, doc("401", "UNAUTHENTICATED", "no"), "config: pubsub 401 UNAUTHENTICATED"},
		{"precondition", 400, doc("400", "FAILED_PRECONDITION", "key disabled"), "config: pubsub 400 FAILED_PRECONDITION: check the topic's message storage policy"},
		{"quota", 429, doc("429", "RESOURCE_EXHAUSTED", "slow"), "throttled: pubsub 429 RESOURCE_EXHAUSTED"},
		{"unavailable", 503, doc("503", "UNAVAILABLE", "try"), "throttled: pubsub 503 UNAVAILABLE"},
		{"internal", 500, doc("500", "INTERNAL", "oops"), "transient: pubsub 500 INTERNAL"},
		{"deadline", 504, doc("504", "DEADLINE_EXCEEDED", "late"), "transient: pubsub 504 DEADLINE_EXCEEDED"},
		{"status not spelt out", 404, `{"error":{"code":404,"message":"no","errors":[{"reason":"notFound"}]}}`, "config: pubsub 404 NOT_FOUND"},
		{"400 without a status may be anything", 400, `{"error":{"code":400,"message":"no"}}`, "transient: pubsub 400: no"},
		{"a status nobody has heard of", 418, doc("418", "TEAPOT", "x"), "transient: pubsub 418 TEAPOT"},
		{"wrapped into an array", 404, "[" + doc("404", "NOT_FOUND", "x") + "]", "config: pubsub 404 NOT_FOUND"},

		{"the topic's name, not a message", 400, doc("400", "INVALID_ARGUMENT", "Invalid resource name given (name=projects/p/topics/1). Refer to …"), "config: pubsub 400 INVALID_ARGUMENT: check project and topic"},
		{"the same from the emulator", 400, doc("400", "INVALID_ARGUMENT", "Invalid [topics] name: (name=projects/p/topics/1)"), "config: pubsub 400 INVALID_ARGUMENT: check project and topic"},
		{"storage policy", 400, doc("400", "INVALID_ARGUMENT", "The request violates the topic's Message Storage Policy"), "config: pubsub 400 INVALID_ARGUMENT: check the topic's message storage policy"},
		{"a schema's refusal that quotes a field", 400, doc("400", "INVALID_ARGUMENT", "Invalid data in message: Message failed schema validation: unknown field messageStoragePolicy"), "permanent: pubsub 400 INVALID_ARGUMENT: Invalid data"},
		{"one that quotes a value", 400, doc("400", "INVALID_ARGUMENT", "Invalid data in message: could not parse 'parcel is in transit' by policy as status"), "permanent: pubsub 400 INVALID_ARGUMENT: Invalid data"},
		{"too large is mended by splitting", 400, doc("400", "INVALID_ARGUMENT", "Request payload size exceeds the limit: 10485760 bytes."), "permanent: pubsub 400 INVALID_ARGUMENT: configure claim_check.store"},

		{"400 HTML", 400, html, "transient: pubsub 400 unexpected_reply: the answer is no Google API error document: <html>"},
		{"404 HTML", 404, html, "transient: pubsub 404 unexpected_reply"},
		{"401 of a proxy", 401, `{"error":"invalid_token"}`, "transient: pubsub 401 unexpected_reply"},
		{"403 JSON of a proxy", 403, `{"error":{"message":"blocked"}}`, "transient: pubsub 403 unexpected_reply"},
		{"502 HTML", 502, html, "transient: pubsub 502 unexpected_reply"},
		{"503 empty", 503, ``, "throttled: pubsub 503: the answer is no Google API error document: (empty)"},
		{"429 HTML", 429, html, "throttled: pubsub 429"},
		{"error document that is no UTF-8", 400, doc("400", "INVALID_ARGUMENT", "\xff"), "transient: pubsub 400 unexpected_reply"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := judge(&wire.Reply{Status: tt.status, Header: http.Header{}, Body: []byte(tt.body)}, 2, time.Now())
			switch {
			case tt.want == "" && e != nil:
				t.Errorf("got %v, want nil", e)
			case tt.want != "" && (e == nil || !strings.HasPrefix(e.Error(), tt.want)):
				t.Errorf("got %v\nwant %s…", e, tt.want)
			}
		})
	}
}

func TestTruncatedRepliesProveNothing(t *testing.T) {
	for status, body := range map[int]string{
		200: `{"messageIds":["1","2"]}`,
		400: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x"}}`,
	} {
		e := judge(&wire.Reply{Status: status, Body: []byte(body), Truncated: true}, 2, time.Now())
		if e == nil || e.Class != classify.Transient || e.Code != "unexpected_reply" {
			t.Errorf("%d truncated: got %v, want transient unexpected_reply", status, e)
		}
	}
}

func TestRetryAfterComesFromHeaderAndDocument(t *testing.T) {
	const doc = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}`
	tests := []struct {
		name, header, body string
		want               time.Duration
	}{
		{"neither", "", `{}`, 0},
		{"header", "7", `<html>`, 7 * time.Second},
		{"document", "", doc, 3500 * time.Millisecond},
		{"the longer of both", "2", doc, 3500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if tt.header != "" {
				h.Set("Retry-After", tt.header)
			}
			e := judge(&wire.Reply{Status: 429, Header: h, Body: []byte(tt.body)}, 1, time.Now())
			if e == nil || e.Class != classify.Throttled || e.RetryAfter != tt.want {
				t.Errorf("got %v with RetryAfter %v, want throttled with %v", e, e.RetryAfter, tt.want)
			}
		})
	}
}

// A reply comes from the network: whatever it holds, the verdict is printable, bounded, and success
// takes exactly the ids that were asked for.
func FuzzJudge(f *testing.F) {
	f.Add(200, []byte(`{"messageIds":["1","2"]}`), 2)
	f.Add(200, []byte(`{"messageIds":["\u0022","\\"]}`), 2)
	f.Add(400, []byte(`{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x","details":[{}]}}`), 3)
	f.Add(503, []byte(`[{"error":{"code":1e9,"status":"","message":""}}]`), 1)
	f.Fuzz(func(t *testing.T, status int, body []byte, n int) {
		e := judge(&wire.Reply{Status: status, Header: http.Header{}, Body: body}, n, time.Time{})
		if e == nil {
			if status != 200 {
				t.Fatalf("status %d taken for success", status)
			}
			if ids, ok := countMessageIDs(body); !ok || ids != n {
				t.Fatalf("%q taken for %d ids", body, n)
			}
			return
		}
		text := e.Error()
		if len(text) > 1200 || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x00") {
			t.Fatalf("error text %q", text)
		}
		if e.Class == classify.Permanent && e.Code != "INVALID_ARGUMENT" {
			t.Fatalf("%v is permanent", e)
		}
	})
}

// The fast counter has to agree with a decoder that keeps the ids.
func FuzzCountMessageIDs(f *testing.F) {
	for _, s := range []string{`{"messageIds":["1","2"]}`, `{"messageIds":[]}`, `{"messageIds":["a\\","\"",""]}`, `{"messageIds":[null]}`, `{"messageids":["1"],"messageIds":["1","2"]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		n, ok := countMessageIDs(body)
		want, wantOK := slowCount(body)
		if ok != wantOK || n != want {
			t.Fatalf("%q: got %d %v, want %d %v", body, n, ok, want, wantOK)
		}
	})
}

// slowCount counts with encoding/json alone.
func slowCount(body []byte) (int, bool) {
	var r struct {
		MessageIDs *[]any `json:"messageIds"`
	}
	if !utf8.Valid(body) || json.Unmarshal(body, &r) != nil || r.MessageIDs == nil {
		return 0, false
	}
	n := 0
	for _, id := range *r.MessageIDs {
		s, ok := id.(string)
		if !ok {
			return 0, false
		}
		if s != "" {
			n++
		}
	}
	return n, true
}
