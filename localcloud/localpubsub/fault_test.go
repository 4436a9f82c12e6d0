package localpubsub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// Each fault strikes the second of three requests, and the third finds the service as it was.
func TestFaults(t *testing.T) {
	refused := func(status int, code string) func(*testing.T, answer, error) {
		return func(t *testing.T, a answer, err error) {
			if err != nil || a.status != status || a.code != code {
				t.Errorf("got %v, %v, want %d %s", a, err, status, code)
			}
		}
	}
	ids := func(n int) func(*testing.T, answer, error) {
		return func(t *testing.T, a answer, err error) {
			if err != nil || a.status != 200 {
				t.Fatalf("got %v, %v, want 200", a, err)
			}
			if got := len(messageIDs(t, a)); got != n {
				t.Errorf("%d ids, want %d: %s", got, n, a.body)
			}
		}
	}
	broken := func(t *testing.T, a answer, err error) {
		if err == nil {
			t.Errorf("got %v, want a broken connection", a)
		}
	}
	for _, c := range []struct {
		name   string
		effect localcloud.Effect
		check  func(*testing.T, answer, error)
		stored string
	}{
		{"429", Exhausted(0), func(t *testing.T, a answer, err error) {
			refused(429, "RESOURCE_EXHAUSTED")(t, a, err)
			if a.header.Get("Retry-After") != "" {
				t.Error("there is a Retry-After")
			}
		}, "[1 3]"},
		{"429 with Retry-After", Exhausted(7 * time.Second), func(t *testing.T, a answer, err error) {
			refused(429, "RESOURCE_EXHAUSTED")(t, a, err)
			if a.header.Get("Retry-After") != "7" {
				t.Errorf("headers %v lack Retry-After: 7", a.header)
			}
		}, "[1 3]"},
		{"503", Refuse("UNAVAILABLE", ""), refused(503, "UNAVAILABLE"), "[1 3]"},
		{"500", Refuse("INTERNAL", ""), refused(500, "INTERNAL"), "[1 3]"},
		{"404", Refuse("NOT_FOUND", ""), refused(404, "NOT_FOUND"), "[1 3]"},
		{"403", Refuse("PERMISSION_DENIED", ""), refused(403, "PERMISSION_DENIED"), "[1 3]"},
		{"precondition", Refuse("FAILED_PRECONDITION", ""), refused(400, "FAILED_PRECONDITION"), "[1 3]"},
		{"503 after storing", localcloud.Effect{Stored: true, Error: &localcloud.ErrorReply{Code: "UNAVAILABLE"}}, refused(503, "UNAVAILABLE"), "[1 2a 2b 3]"},
		{"lost reply", LostReply(), broken, "[1 2a 2b 3]"},
		{"cut", localcloud.Effect{Cut: true}, broken, "[1 3]"},
		{"cut reply", localcloud.Effect{CutReply: true}, broken, "[1 2a 2b 3]"},
		{"half a document", localcloud.Effect{Truncate: true}, func(t *testing.T, a answer, err error) {
			if err != nil || a.status != 200 || len(a.body) == 0 || bytes.HasSuffix(a.body, []byte("}\n")) {
				t.Errorf("got %v, %v, want half a document", a, err)
			}
		}, "[1 2a 2b 3]"},
		{"HTML", localcloud.Effect{Reply: localcloud.HTML(502)}, func(t *testing.T, a answer, err error) {
			if err != nil || a.status != 502 || !bytes.HasPrefix(a.body, []byte("<html>")) {
				t.Errorf("got %v, %v, want an HTML 502", a, err)
			}
		}, "[1 3]"},
		{"null", NullReply(), func(t *testing.T, a answer, err error) {
			if err != nil || a.status != 200 || string(a.body) != "null" {
				t.Errorf("got %v, %v, want null", a, err)
			}
		}, "[1 3]"},
		{"redirect", localcloud.Effect{Reply: localcloud.Redirect("http://example.com/")}, func(t *testing.T, a answer, err error) {
			if err != nil || a.status != 307 || a.header.Get("Location") != "http://example.com/" {
				t.Errorf("got %v, %v, want a redirect", a, err)
			}
		}, "[1 3]"},
		{"too few ids", TooFewIDs(), ids(1), "[1 2a 2b 3]"},
		{"too many ids", TooManyIDs(), ids(3), "[1 2a 2b 3]"},
		{"an id twice", localcloud.Effect{Entries: []localcloud.EntryFault{{Index: 1, Do: localcloud.Twice}}}, ids(3), "[1 2a 2b 3]"},
		{"one unstored", localcloud.Effect{Entries: []localcloud.EntryFault{{Index: 1, Do: localcloud.DropUnstored}}}, ids(1), "[1 2a 3]"},
		{"no ids at all", localcloud.Effect{Entries: []localcloud.EntryFault{{If: func(*localcloud.Entry) bool { return true }, Do: localcloud.Drop}}}, ids(0), "[1 2a 2b 3]"},
		{"one message refused", localcloud.Effect{Entries: []localcloud.EntryFault{{If: func(e *localcloud.Entry) bool { return string(e.Body) == "2b" }}}},
			refused(400, "INVALID_ARGUMENT"), "[1 3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTopic(t, Options{}, TopicOptions{})
			p.Faults.Add(localcloud.Fault{Name: c.name, Action: ActionPublish, Nth: 2, Effect: c.effect})
			cl := serve(t, p)
			if a := cl.publish(t, "hooks", publishBody(texts("", "1")...)); a.status != 200 {
				t.Errorf("before: %v", a)
			}
			// With a body that net/http can't send again, so that it doesn't.
			req, err := http.NewRequestWithContext(t.Context(), "POST", cl.base+"/v1/projects/local/topics/hooks:publish",
				struct{ io.Reader }{strings.NewReader(publishBody(texts("", "2a", "2b")...))})
			if err != nil {
				t.Fatal(err)
			}
			a, err := read(cl.client.Do(req))
			c.check(t, a, err)
			if a := cl.publish(t, "hooks", publishBody(texts("", "3")...)); a.status != 200 {
				t.Errorf("after: %v", a)
			}
			if got := fmt.Sprint(data(p, "hooks")); got != c.stored {
				t.Errorf("stored %s, want %s", got, c.stored)
			}
			if fired := p.Faults.Fired(); len(fired) != 1 || fired[0].Ordinal != 2 || fired[0].Resource != "hooks" {
				t.Errorf("fired %+v, want once at 2", fired)
			}
			log := p.RequestLog("hooks")
			if len(log) != 3 || log[1].Ordinal != 2 || log[1].Entries != 2 || log[1].Stored != strings.Contains(c.stored, "2a") {
				t.Errorf("log %+v", log)
			}
		})
	}
}

func TestStallLastsUntilTheClientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTopic(t, Options{}, TopicOptions{})
		p.Faults.Add(localcloud.Fault{Action: ActionPublish, Nth: 1, Effect: localcloud.Effect{Stall: true, Stored: true}})
		c, stop := piped(p)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.do(ctx, "POST", "/topics/hooks:publish", publishBody(texts("", "x")...)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the client's deadline", err)
		}
		if got := fmt.Sprint(data(p, "hooks")); got != "[x]" {
			t.Errorf("stored %s, want x", got)
		}
	})
}

func TestEndlessReplyEndsWithItsClient(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{})
	p.Faults.Add(localcloud.Fault{Action: ActionPublish, Effect: localcloud.Effect{Endless: true}})
	c := serve(t, p)
	resp, err := c.client.Post(c.base+"/v1/projects/local/topics/hooks:publish", "application/json", strings.NewReader(publishBody(texts("", "x")...)))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(io.Discard, resp.Body, 4<<20); err != nil {
		t.Errorf("the reply ended after %d bytes: %v", n, err)
	}
	_ = resp.Body.Close() // serve's cleanup waits for the handler
}

func TestFaultsReachEveryAction(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{})
	p.Faults.Add(localcloud.Fault{Action: ActionGetTopic, Resource: "hooks", Times: 1, Effect: Refuse("PERMISSION_DENIED", "no")})
	c := serve(t, p)
	if a := c.call(t, "GET", "/topics/hooks", ""); a.status != 403 || a.text != "no" {
		t.Errorf("got %v, want 403", a)
	}
	c.must(t, "GET", "/topics/hooks", "")
	if got := p.Refused()["PERMISSION_DENIED"]; got != 1 {
		t.Errorf("%d refused, want 1", got)
	}
}

// A seed makes a storm repeatable.
func TestChanceIsSeeded(t *testing.T) {
	storm := func(seed uint64) (codes []int) {
		p := newTopic(t, Options{}, TopicOptions{})
		p.Faults.Seed(seed)
		p.Faults.Add(localcloud.Fault{Action: ActionPublish, Chance: 0.5, Effect: Refuse("UNAVAILABLE", "")})
		c := serve(t, p)
		for range 32 {
			codes = append(codes, c.publish(t, "hooks", publishBody(texts("", "x")...)).status)
		}
		return codes
	}
	first := fmt.Sprint(storm(7))
	if again := fmt.Sprint(storm(7)); again != first {
		t.Errorf("the same seed gave %s, then %s", first, again)
	}
	if !strings.Contains(first, "503") || !strings.Contains(first, "200") {
		t.Errorf("at one half: %s", first)
	}
}
