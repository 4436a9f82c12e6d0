package batcher

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A cloud takes requests of named entries, and answers after its latency as its script says.
type cloud struct {
	latency time.Duration
	// script returns the result of one entry. nil takes everything.
	script func(request int, name string) error

	mu       sync.Mutex
	began    time.Time
	requests []sentRequest
	inFlight int
	most     int // in flight at once
}

type sentRequest struct {
	queue string
	names []string
	at    time.Duration
}

func (r sentRequest) String() string { return strings.Join(r.names, " ") }

func newCloud() *cloud { return &cloud{began: time.Now()} }

func (c *cloud) send(ctx context.Context, queue string, values []string) []error {
	c.mu.Lock()
	n := len(c.requests)
	c.requests = append(c.requests, sentRequest{queue, append([]string(nil), values...), time.Since(c.began)})
	c.inFlight++
	c.most = max(c.most, c.inFlight)
	c.mu.Unlock()
	if c.latency > 0 {
		select {
		case <-time.After(c.latency):
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	errs := make([]error, len(values))
	for i, v := range values {
		if err := ctx.Err(); err != nil {
			errs[i] = err
		} else if c.script != nil {
			errs[i] = c.script(n, v)
		}
	}
	return errs
}

// sent returns what has left so far, one string per request.
func (c *cloud) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, r := range c.requests {
		all = append(all, r.String())
	}
	return all
}

func (c *cloud) at(request int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request >= len(c.requests) {
		return -1
	}
	return c.requests[request].at
}

func newBatch(t *testing.T, c *cloud, o Options) *Batcher[string] {
	t.Helper()
	if o.MaxEntries == 0 {
		o.MaxEntries = 10
	}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0.5 }
	}
	b, err := New("q", c.send, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		b.Close(ctx)
	})
	return b
}

// entry reads "name", "name@group" or "tenant/name@group", each of size 1.
func entry(s string) Entry[string] {
	e := Entry[string]{Size: 1}
	s, e.Group, _ = strings.Cut(s, "@")
	if tenant, name, ok := strings.Cut(s, "/"); ok {
		e.Tenant, s = tenant, name
	}
	e.Value = s
	return e
}

func entries(names ...string) []Entry[string] {
	var all []Entry[string]
	for _, s := range names {
		all = append(all, entry(s))
	}
	return all
}

// many returns n entries like format, which holds one %d.
func many(n int, format string) []Entry[string] {
	var all []Entry[string]
	for i := range n {
		all = append(all, entry(fmt.Sprintf(format, i)))
	}
	return all
}

// submit calls Submit on its own goroutine. The channel holds the results when it is done.
func submit(ctx context.Context, b interface {
	Submit(context.Context, []Entry[string]) []error
}, all []Entry[string]) <-chan []error {
	done := make(chan []error, 1)
	go func() { done <- b.Submit(ctx, all) }()
	return done
}

func returned(done <-chan []error) bool { return len(done) == 1 }

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// classes spells results: "ok", else class and code.
func classes(errs []error) string {
	var all []string
	for _, err := range errs {
		e := classify.Of(err)
		switch {
		case e == nil:
			all = append(all, "ok")
		case e.Code == "":
			all = append(all, e.Class.String())
		default:
			all = append(all, e.Class.String()+":"+e.Code)
		}
	}
	return strings.Join(all, " ")
}

func wantResults(t *testing.T, done <-chan []error, want string) {
	t.Helper()
	select {
	case errs := <-done:
		if got := classes(errs); got != want {
			t.Errorf("results %q, want %q", got, want)
		}
	default:
		t.Errorf("Submit has not returned, want %q", want)
	}
}

func fail(class classify.Class) error { return &classify.Error{Class: class, Service: "test"} }

func failAfter(d time.Duration) error {
	return &classify.Error{Class: classify.Throttled, Service: "test", RetryAfter: d}
}
