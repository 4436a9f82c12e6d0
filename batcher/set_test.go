package batcher

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

func newTestSet(t *testing.T, c *cloud, o Options) *Set[string] {
	t.Helper()
	if o.MaxEntries == 0 {
		o.MaxEntries = 10
	}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0.5 }
	}
	s, err := NewSet(c.send, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Close(ctx)
	})
	return s
}

func onQueue(queue string, names ...string) []Entry[string] {
	all := entries(names...)
	for i := range all {
		all[i].Queue = queue
	}
	return all
}

func (c *cloud) to(queue string) (sent []string) {
	for _, r := range c.requests {
		if r.queue == queue {
			sent = append(sent, r.String())
		}
	}
	return sent
}

func TestQueuesGoSideBySideEachInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = time.Second
		c.script = failing(classify.Permanent, map[string]int{"y1": 1})
		s := newTestSet(t, c, Options{MaxInFlight: 1, MaxEntries: 2})
		x, y := onQueue("x", "x1@g", "x2@g", "x3@g"), onQueue("y", "y1@g", "y2@g")
		done := submit(t.Context(), s, []Entry[string]{x[0], y[0], x[1], y[1], x[2]})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantResults(t, done, "ok permanent ok ok ok")
		want(t, c.to("x"), "x1 x2", "x3")
		want(t, c.to("y"), "y1 y2")
	})
}

// The gauge is the output's: a call that waits for room in one queue can still add to another.
func TestNobodyLeftFlushesEveryQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := newTestSet(t, c, Options{MaxInFlight: 2, Linger: time.Minute})
		submit(t.Context(), s, onQueue("x", "x1"))
		synctest.Wait()
		want(t, c.sent())
		submit(t.Context(), s, append(onQueue("y", "y1"), onQueue("z", "z1")...))
		synctest.Wait()
		got := c.sent()
		slices.Sort(got)
		want(t, got, "x1", "y1", "z1")
		if n := s.gauge.awaiting.Load(); n != 0 {
			t.Errorf("the gauge counts %d after all have returned", n)
		}
	})
}

func TestIdleQueuesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = time.Second
		s := newTestSet(t, c, Options{MaxEntries: 1, IdleTimeout: time.Minute})
		open := func() int {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.queues)
		}
		s.Submit(t.Context(), onQueue("a", "a"))
		time.Sleep(30 * time.Second)
		s.Submit(t.Context(), onQueue("b", "b"))
		if n := open(); n != 2 {
			t.Fatalf("%d queues, want 2", n)
		}
		time.Sleep(30 * time.Second)
		if n := open(); n != 1 {
			t.Errorf("%d queues after a minute without a, want 1", n)
		}
		time.Sleep(31 * time.Second)
		if n := open(); n != 0 {
			t.Errorf("%d queues after a minute without any, want 0", n)
		}
		done := submit(t.Context(), s, onQueue("a", "again"))
		time.Sleep(time.Second)
		synctest.Wait()
		wantResults(t, done, "ok")
	})
}

// Forgetting a Retry-After because nobody has used the queue meanwhile would break it.
func TestPausedQueueIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(request int, _ string) error {
			if request == 0 {
				return failAfter(time.Hour)
			}
			return nil
		}
		s := newTestSet(t, c, Options{MaxEntries: 1, IdleTimeout: time.Minute, MaxElapsedTime: time.Second})
		s.Submit(t.Context(), onQueue("a", "a"))
		time.Sleep(10 * time.Minute)
		s.Submit(t.Context(), onQueue("a", "b"))
		if at := c.at(1); at != time.Hour {
			t.Errorf("sent after %v, want 1h", at)
		}
	})
}

func TestSetCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 3 * time.Second
		s := newTestSet(t, c, Options{MaxEntries: 2, Linger: time.Minute})
		done := submit(t.Context(), s, append(onQueue("x", "x1", "x2", "x3"), onQueue("y", "y1")...))
		synctest.Wait()
		start := time.Now()
		if err := s.Close(t.Context()); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("Close = %v after %v, want nil after 3s", err, time.Since(start))
		}
		synctest.Wait()
		wantResults(t, done, "ok ok transient:closed transient:closed")
		if got := classes(s.Submit(t.Context(), onQueue("x", "late"))); got != "transient:closed" {
			t.Errorf("after Close: %q", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("second Close = %v", err)
		}
	})
}

type sums struct{ entries, bytes, held, retried int }

type ledger struct {
	mu sync.Mutex
	sums
}

func (l *ledger) Waiting(entries, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries += entries
	l.bytes += bytes
}

func (l *ledger) Held(groups int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += groups
}

func (l *ledger) Retried(_ classify.Class, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retried += n
}

func (l *ledger) read() sums {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums
}

func TestObserverSumsAreRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = failing(classify.Transient, map[string]int{"a": 2, "b": 1})
		var l ledger
		b := newBatch(t, c, Options{Observer: &l, MaxInFlight: 1})
		done := submit(t.Context(), b, entries("a@g", "b", "c@g"))
		synctest.Wait()
		// c has left and was taken with the first request.
		if got := l.read(); got != (sums{entries: 2, bytes: 2, held: 1, retried: 2}) {
			t.Errorf("while a and b wait for their retry: %+v", got)
		}
		time.Sleep(time.Second)
		wantResults(t, done, "ok ok ok")
		if got := l.read(); got != (sums{retried: 3}) {
			t.Errorf("at the end: %+v", got)
		}
	})
}

func TestOptionsOutOfRangeAreNamed(t *testing.T) {
	send := newCloud().send
	for field, o := range map[string]Options{
		"MaxEntries":       {},
		"MaxBytes":         {MaxEntries: 1, MaxBytes: -1},
		"RequestWireBytes": {MaxEntries: 1, MaxWireBytes: 5, RequestWireBytes: 5},
		"Linger":           {MaxEntries: 1, Linger: -1},
		"MaxRequests":      {MaxEntries: 1, MaxRequests: -1},
		"MaxInterval":      {MaxEntries: 1, InitialInterval: time.Minute, MaxInterval: time.Second},
		"MaxElapsedTime":   {MaxEntries: 1, MaxElapsedTime: -1},
	} {
		if _, err := NewSet(send, o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("NewSet(%+v) = %v, want an error that names %s", o, err, field)
		}
	}
	if _, err := New[string]("q", nil, Options{MaxEntries: 1}); err == nil {
		t.Error("New without a SendFunc succeeds")
	}
}
