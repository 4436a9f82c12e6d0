package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// topic is a double of the service behind an injected post. Data of a message is its name; a name in
// bad is refused as the service does it: the whole request, without saying which.
type topic struct {
	t        *testing.T
	bad      map[string]bool
	fail     func(request int, names []string) *wire.Reply // consulted first; nil: go on
	requests [][]string                                    // names of each request's messages
	keys     []string                                      // each request's ordering key
	sizes    []int
	accepted []string // in order
	bisected int
	client   *Client
}

func reply(status int, google, message string) *wire.Reply {
	return &wire.Reply{Status: status, Header: http.Header{}, Body: fmt.Appendf(nil, `{"error":{"code":%d,"status":%q,"message":%q}}`, status, google, message)}
}

func (d *topic) post(_ context.Context, r *wire.Request) (*wire.Reply, error) {
	var got shape
	if err := json.Unmarshal(r.Body, &got); err != nil {
		d.t.Fatalf("the request is no JSON: %v", err)
	}
	var names []string
	for _, m := range got.Messages {
		names = append(names, string(m.Data))
		if m.OrderingKey != got.Messages[0].OrderingKey {
			d.t.Errorf("request with the keys %q and %q", got.Messages[0].OrderingKey, m.OrderingKey)
		}
	}
	if len(names) == 0 || len(names) > MaxEntries || len(r.Body) > MaxBodyBytes {
		d.t.Errorf("request of %d messages, %d bytes", len(names), len(r.Body))
	}
	d.requests = append(d.requests, names)
	d.keys = append(d.keys, got.Messages[0].OrderingKey)
	d.sizes = append(d.sizes, len(r.Body))
	if d.fail != nil {
		if reply := d.fail(len(d.requests), names); reply != nil {
			return reply, nil
		}
	}
	for _, name := range names {
		if d.bad[name] {
			return reply(400, "INVALID_ARGUMENT", "Message failed schema validation."), nil
		}
	}
	d.accepted = append(d.accepted, names...)
	ids := make([]string, len(names))
	for i := range ids {
		ids[i] = strconv.Itoa(i + 1)
	}
	body, _ := json.Marshal(map[string]any{"messageIds": ids})
	return &wire.Reply{Status: 200, Body: body}, nil
}

func newTopic(t *testing.T, opts Options) *topic {
	t.Helper()
	opts.Project = "acme"
	opts.Wire = wire.New(wire.Options{Service: "pubsub"})
	t.Cleanup(opts.Wire.Close)
	d := &topic{t: t, bad: map[string]bool{}}
	opts.Bisected = func() { d.bisected++ }
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	c.post = d.post
	d.client = c
	return d
}

func named(n int, key string) []Message {
	msgs := make([]Message, n)
	for i := range msgs {
		msgs[i] = Message{Data: []byte(strconv.Itoa(i)), OrderingKey: key}
	}
	return msgs
}

// failures maps index to the start of the error's text.
func failures(errs []error) map[int]string {
	m := map[int]string{}
	for i, err := range errs {
		if err != nil {
			m[i] = err.Error()
		}
	}
	return m
}

func (d *topic) wantAcceptedOnce(errs []error) {
	d.t.Helper()
	count := map[string]int{}
	for _, name := range d.accepted {
		count[name]++
	}
	for i, err := range errs {
		if name := strconv.Itoa(i); (err == nil) != (count[name] == 1) || count[name] > 1 {
			d.t.Errorf("message %d: result %v, stored %d times", i, err, count[name])
		}
	}
}

func TestBisectionFindsExactlyTheBadMessages(t *testing.T) {
	tests := []struct {
		name        string
		n           int
		bad         []int
		maxRequests int
	}{
		{"none", 1000, nil, 1},
		{"number 617 of 1000", 1000, []int{617}, 1 + 20},
		{"first and last", 1000, []int{0, 999}, 1 + 2*20},
		{"five scattered", 1000, []int{1, 250, 251, 700, 998}, 1 + 5*20},
		{"a single message", 1, []int{0}, 1},
		{"two, the second bad", 2, []int{1}, 3},
		{"all of 1000 are bad", 1000, seq(1000), 2*1000 - 1},
	}
	for _, tt := range tests {
		for _, key := range []string{"", "k"} {
			t.Run(tt.name+"/key="+key, func(t *testing.T) {
				d := newTopic(t, Options{})
				for _, i := range tt.bad {
					d.bad[strconv.Itoa(i)] = true
				}
				errs := d.client.Publish(t.Context(), "hooks", named(tt.n, key))
				for i, err := range errs {
					if bad := slices.Contains(tt.bad, i); bad != (err != nil) || bad && classify.Of(err).Class != classify.Permanent {
						t.Errorf("message %d: %v, want bad: %v", i, err, bad)
					}
				}
				d.wantAcceptedOnce(errs)
				if len(d.requests) > tt.maxRequests {
					t.Errorf("%d requests, want at most %d", len(d.requests), tt.maxRequests)
				}
				if want := (len(d.requests) - 1) / 2; d.bisected != want {
					t.Errorf("%d bisections reported, want %d", d.bisected, want)
				}
				if !slices.IsSortedFunc(d.accepted, func(a, b string) int { return atoi(a) - atoi(b) }) {
					t.Errorf("stored out of order: %v", d.accepted)
				}
			})
		}
	}
}

func seq(n int) (s []int) {
	for i := range n {
		s = append(s, i)
	}
	return s
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

// A 503 in the middle of a bisection costs the part that met it, and nobody else.
func TestFailureDuringBisectionIsItsPartsAlone(t *testing.T) {
	d := newTopic(t, Options{})
	d.bad["5"] = true
	d.fail = func(_ int, names []string) *wire.Reply {
		if len(names) == 4 && names[0] == "0" { // the left half of the left half
			return reply(503, "UNAVAILABLE", "later")
		}
		return nil
	}
	msgs := named(16, "")
	errs := d.client.Publish(t.Context(), "hooks", msgs)
	for i, err := range errs {
		e := classify.Of(err)
		switch {
		case i < 4 && (e == nil || e.Class != classify.Throttled):
			t.Errorf("message %d: %v, want throttled", i, err)
		case i == 5 && (e == nil || e.Class != classify.Permanent):
			t.Errorf("message %d: %v, want permanent", i, err)
		case i > 5 && err != nil, i == 4 && err != nil:
			t.Errorf("message %d: %v, want nil", i, err)
		}
	}
	// The retry holds what failed, and only that.
	d.fail = nil
	retried := d.client.Publish(t.Context(), "hooks", msgs[:4])
	if len(failures(retried)) != 0 {
		t.Errorf("retry: %v", failures(retried))
	}
	if got := len(d.accepted); got != 15 {
		t.Errorf("%d messages stored, want 15", got)
	}
	slices.Sort(d.accepted)
	if got := slices.Compact(d.accepted); len(got) != 15 {
		t.Errorf("stored twice: %v", d.accepted)
	}
}

// With a key, what comes after a failure must not overtake it; a message that is refused for good is out
// of the way.
func TestOrderingKeyIsHeldBehindAFailureThatMayPass(t *testing.T) {
	tests := []struct {
		name   string
		reply  *wire.Reply
		class  classify.Class // of the part that met it
		behind string         // how the rest fails; empty: it is sent
	}{
		{"throttled", reply(503, "UNAVAILABLE", "later"), classify.Throttled, "transient: pubsub held: held behind"},
		{"transient", reply(500, "INTERNAL", "oops"), classify.Transient, "transient: pubsub held: held behind"},
		{"config", reply(403, "PERMISSION_DENIED", "no"), classify.Config, "transient: pubsub held: held behind"},
		{"permanent", reply(400, "INVALID_ARGUMENT", "no"), classify.Permanent, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newTopic(t, Options{})
			d.bad["7"] = true // so that the request is cut
			d.fail = func(_ int, names []string) *wire.Reply {
				if len(names) == 1 && names[0] == "2" || len(names) == 2 && names[0] == "2" && tt.behind != "" {
					return tt.reply
				}
				if slices.Contains(names, "2") {
					return reply(400, "INVALID_ARGUMENT", "no")
				}
				return nil
			}
			errs := d.client.Publish(t.Context(), "hooks", named(8, "k"))
			for i, err := range errs {
				e := classify.Of(err)
				switch {
				case i < 2 && err != nil:
					t.Errorf("message %d: %v, want nil", i, err)
				case i == 2 && (e == nil || e.Class != tt.class):
					t.Errorf("message %d: %v, want %v", i, err, tt.class)
				case i > 3 && tt.behind != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.behind)):
					t.Errorf("message %d: %v, want %s…", i, err, tt.behind)
				case i > 3 && i != 7 && tt.behind == "" && err != nil:
					t.Errorf("message %d: %v, want nil", i, err)
				}
			}
			d.wantAcceptedOnce(errs)
		})
	}
}

func TestOneKeysFailureHoldsNoOtherKey(t *testing.T) {
	d := newTopic(t, Options{MaxEntries: 2})
	d.fail = func(n int, names []string) *wire.Reply {
		if names[0] == "0" {
			return reply(500, "INTERNAL", "oops")
		}
		return nil
	}
	msgs := named(9, "a")
	for i := range msgs {
		msgs[i].OrderingKey = string("abc"[i%3])
	}
	errs := d.client.Publish(t.Context(), "hooks", msgs)
	for i, err := range errs {
		switch {
		case i%3 != 0 && err != nil:
			t.Errorf("message %d of key %s: %v, want nil", i, msgs[i].OrderingKey, err)
		case i == 6 && (err == nil || classify.Of(err).Code != "held"):
			t.Errorf("message %d: %v, want held", i, err)
		case (i == 0 || i == 3) && (err == nil || classify.Of(err).Code != "INTERNAL"):
			t.Errorf("message %d: %v, want INTERNAL", i, err)
		}
	}
	if want := []string{"1", "4", "7", "2", "5", "8"}; !slices.Equal(d.accepted, want) {
		t.Errorf("stored %v, want %v", d.accepted, want)
	}
}

// Nothing but one message's fault is bisected.
func TestOtherFailuresAreNotBisected(t *testing.T) {
	for _, r := range []*wire.Reply{
		reply(404, "NOT_FOUND", "no"),
		reply(403, "PERMISSION_DENIED", "no"),
		reply(400, "FAILED_PRECONDITION", "no"),
		reply(400, "INVALID_ARGUMENT", "violates the message storage policy"),
		reply(400, "INVALID_ARGUMENT", "Invalid resource name given (name=projects/p/topics/-)."),
		reply(429, "RESOURCE_EXHAUSTED", "no"),
		reply(503, "UNAVAILABLE", "no"),
		reply(500, "INTERNAL", "no"),
		{Status: 400, Body: []byte("<html>")},
		{Status: 413, Body: []byte("<html>")},
		{Status: 200, Body: []byte(`{"messageIds":["1"]}`)},
	} {
		t.Run(fmt.Sprint(r.Status, string(r.Body)), func(t *testing.T) {
			d := newTopic(t, Options{})
			d.fail = func(int, []string) *wire.Reply { return r }
			errs := d.client.Publish(t.Context(), "hooks", named(100, ""))
			if len(d.requests) != 1 || d.bisected != 0 {
				t.Errorf("%d requests, %d bisections, want 1 and 0", len(d.requests), d.bisected)
			}
			for i, err := range errs {
				if err == nil || classify.Of(err).Class == classify.Permanent {
					t.Errorf("message %d: %v, want a failure that is not permanent", i, err)
				}
			}
		})
	}
}

// The service said when it wants to hear from us again: the rest of the call keeps quiet until then.
func TestRetryAfterEndsTheCall(t *testing.T) {
	d := newTopic(t, Options{MaxEntries: 10})
	d.fail = func(n int, _ []string) *wire.Reply {
		r := reply(429, "RESOURCE_EXHAUSTED", "slow")
		r.Header.Set("Retry-After", "9")
		return r
	}
	errs := d.client.Publish(t.Context(), "hooks", named(30, ""))
	if len(d.requests) != 1 {
		t.Errorf("%d requests, want 1", len(d.requests))
	}
	for i, err := range errs {
		if e := classify.Of(err); e == nil || e.Class != classify.Throttled || e.RetryAfter.Seconds() != 9 {
			t.Errorf("message %d: %v, want throttled for 9s", i, err)
		}
	}
}

func TestRequestsAreCutAtEveryLimit(t *testing.T) {
	big := func(n, bytes int) (msgs []Message) {
		data := make([]byte, bytes)
		for range n {
			msgs = append(msgs, Message{Data: data})
		}
		return msgs
	}
	escapes := big(1000, 1)
	for i := range escapes {
		for j := range 2 {
			// 1 KiB of characters that JSON writes with six.
			escapes[i].Attributes = append(escapes[i].Attributes, Attribute{strconv.Itoa(j), strings.Repeat("\x01", 1024)})
		}
	}
	tests := []struct {
		name string
		opts Options
		msgs []Message
		want []int // messages of each request
	}{
		{"entries", Options{}, named(2001, ""), []int{1000, 1000, 1}},
		{"configured entries", Options{MaxEntries: 3}, named(7, ""), []int{3, 3, 1}},
		{"bytes of data", Options{MaxBytes: 100}, big(7, 30), []int{3, 3, 1}},
		{"exactly the bytes", Options{MaxBytes: 90}, big(6, 30), []int{3, 3}},
		{"one larger than max_bytes travels alone", Options{MaxBytes: 20}, big(2, 30), []int{1, 1}},
		{"base64: 9.0 MB of data are 12.0 MB of body", Options{MaxBytes: 10_000_000}, big(9, 1_000_000), []int{7, 2}},
		{"escapes: 2 MB of attributes are 12 MB of body", Options{}, escapes, []int{850, 150}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newTopic(t, tt.opts)
			errs := d.client.Publish(t.Context(), "hooks", tt.msgs)
			var got []int
			for _, r := range d.requests {
				got = append(got, len(r))
			}
			if !slices.Equal(got, tt.want) || len(failures(errs)) != 0 {
				t.Errorf("requests of %v messages, %d failures, want %v, 0", got, len(failures(errs)), tt.want)
			}
			for i, size := range d.sizes {
				if size > MaxBodyBytes {
					t.Errorf("request %d has %d bytes", i, size)
				}
			}
		})
	}
}

// What is known to be bad never joins a request, and its neighbours go without it.
func TestLocallyBadMessagesFailAlone(t *testing.T) {
	d := newTopic(t, Options{MaxMessageBytes: 8_000_000})
	msgs := named(6, "")
	msgs[1].Attributes = []Attribute{{"ankusa_dedupe_key", "a\xc5z"}}
	msgs[3].Data = make([]byte, 7_990_000) // fits the limit, not REST
	msgs[4].Data = make([]byte, 8_000_001)
	errs := d.client.Publish(t.Context(), "hooks", msgs)
	for i, code := range map[int]string{1: "invalid_field", 3: "message_too_large", 4: "message_too_large"} {
		checkPermanent(t, errs[i], code, "")
	}
	if want := []string{"0", "2", "5"}; len(failures(errs)) != 3 || !slices.Equal(d.accepted, want) {
		t.Errorf("stored %v, failures %v, want %v", d.accepted, failures(errs), want)
	}
}

func TestOnlyBadMessagesMeanNoRequest(t *testing.T) {
	d := newTopic(t, Options{})
	errs := d.client.Publish(t.Context(), "hooks", []Message{{Data: make([]byte, 8_000_000)}})
	checkPermanent(t, errs[0], "message_too_large", "claim_check.store")
	errs = d.client.Publish(t.Context(), "projects/acme/topics/hooks", named(2, ""))
	checkPermanent(t, errs[1], "invalid_field", "short name")
	if got := d.client.Publish(t.Context(), "hooks", nil); len(got) != 0 {
		t.Errorf("results for no messages: %v", got)
	}
	if len(d.requests) != 0 {
		t.Errorf("%d requests, want none", len(d.requests))
	}
}

func TestEndedContextSendsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := newTopic(t, Options{MaxEntries: 1})
	d.fail = func(int, []string) *wire.Reply { cancel(); return nil }
	errs := d.client.Publish(ctx, "hooks", named(3, ""))
	if errs[0] != nil || len(d.requests) != 1 {
		t.Errorf("first result %v after %d requests, want nil after 1", errs[0], len(d.requests))
	}
	for _, err := range errs[1:] {
		if !errors.Is(err, context.Canceled) || classify.Of(err).Class != classify.Transient {
			t.Errorf("got %v, want transient around context.Canceled", err)
		}
	}
}

// The batcher's slices and bodies come back to it: Publish neither changes nor reorders them.
func TestPublishLeavesItsInputAlone(t *testing.T) {
	d := newTopic(t, Options{})
	msgs := named(6, "")
	for i := range msgs {
		msgs[i].OrderingKey = string("ba"[i%2])
	}
	want := slices.Clone(msgs)
	d.client.Publish(t.Context(), "hooks", msgs)
	for i := range msgs {
		if msgs[i].OrderingKey != want[i].OrderingKey || string(msgs[i].Data) != string(want[i].Data) {
			t.Errorf("message %d is now %v", i, msgs[i])
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	w := wire.New(wire.Options{Service: "pubsub"})
	t.Cleanup(w.Close)
	tests := []struct {
		name string
		opts Options
		text string // empty: accepted
	}{
		{"defaults", Options{Project: "p", Wire: w}, ""},
		{"no wire", Options{Project: "p"}, "Wire"},
		{"no project", Options{Wire: w}, "set project or GOOGLE_CLOUD_PROJECT"},
		{"no project of an emulator", Options{Wire: w, Endpoint: "http://localhost:1", Projects: &Credentials{}}, "set project"},
		{"project by credential", Options{Wire: w, Projects: &Credentials{}}, ""},
		{"bad project", Options{Wire: w, Project: "a/b"}, "project"},
		{"bad endpoint", Options{Wire: w, Project: "p", Endpoint: "ftp://x"}, "endpoint"},
		{"entries", Options{Wire: w, Project: "p", MaxEntries: 1001}, "max_entries is 1001, it must be from 1 to 1000"},
		{"negative", Options{Wire: w, Project: "p", MaxEntries: -1}, "max_entries"},
		{"bytes", Options{Wire: w, Project: "p", MaxBytes: 10_000_001}, "max_bytes"},
		{"message bytes", Options{Wire: w, Project: "p", MaxMessageBytes: 10_000_001}, "max_message_bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.opts)
			if tt.text == "" && err != nil || tt.text != "" && (err == nil || !strings.Contains(err.Error(), tt.text)) {
				t.Errorf("got %v, want %q", err, tt.text)
			}
		})
	}
}
