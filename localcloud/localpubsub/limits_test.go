package localpubsub

import (
	"fmt"
	"net/http"
	"testing"
)

// The suite of conformance_test.go holds the limits themselves; this is what refusal means here.
func TestOneBadMessageRefusesTheRequest(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{})
	c := serve(t, p)
	bad := testMessage{Attributes: map[string]string{"googx": "v"}}
	if a := c.publish(t, "hooks", publishBody(append(texts("", "a", "b"), bad)...)); a.status != 400 || a.code != "INVALID_ARGUMENT" {
		t.Errorf("got %v, want 400 INVALID_ARGUMENT", a)
	}
	if a := c.publish(t, "hooks", publishBody(append(texts("k", "a"), texts("l", "b")...)...)); a.status != 400 || a.code != "FAILED_PRECONDITION" {
		t.Errorf("got %v, want 400 FAILED_PRECONDITION", a)
	}
	if got := data(p, "hooks"); len(got) != 0 {
		t.Errorf("stored %q, want nothing", got)
	}
	s := p.Stats("hooks")
	if s.Requests != 2 || s.Entries != 5 || s.Messages != 0 || s.Accepted != 0 || fmt.Sprint(s.Refused) != "map[FAILED_PRECONDITION:1 INVALID_ARGUMENT:1]" {
		t.Errorf("stats %+v", s)
	}
}

// Only the server knows a schema, so only bisection finds the message it refuses.
func TestRejectPlaysASchema(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{Reject: func(m *StoredMessage) bool { return string(m.Data) == "bad" }})
	c := serve(t, p)
	if a := c.publish(t, "hooks", publishBody(texts("", "a", "bad", "b")...)); a.status != 400 || a.code != "INVALID_ARGUMENT" {
		t.Errorf("got %v, want 400 INVALID_ARGUMENT", a)
	}
	if a := c.publish(t, "hooks", publishBody(texts("", "a", "b")...)); a.status != http.StatusOK {
		t.Errorf("got %v, want 200", a)
	}
	if got := data(p, "hooks"); fmt.Sprint(got) != "[a b]" {
		t.Errorf("stored %q, want a and b", got)
	}
}

// A client has to see the refusal and not a reset, however much it was still sending.
func TestOversizedBodyIsReadToTheEnd(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{})
	c := serve(t, p)
	body := bodyOf(3 * MaxBodyBytes)
	a := c.publish(t, "hooks", body)
	if a.status != 400 || a.text != "Request payload size exceeds the limit: 10485760 bytes." {
		t.Errorf("got %v", a)
	}
	if got := p.Stats("hooks").MaxBodyBytes; got != len(body) {
		t.Errorf("largest body %d, want %d", got, len(body))
	}
	if a := c.call(t, "POST", "/subscriptions/any:acknowledge", `{"ackIds":[]}`+string(make([]byte, MaxAckBodyBytes))); a.text != "Request payload size exceeds the limit: 524288 bytes." {
		t.Errorf("acknowledge: got %v", a)
	}
}
