package batcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// What waits for longer than it may be retried holds up its caller, and callers are what the queues of
// an output share: half of them at most.
func TestALongPauseKeepsHalfOfTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(request int, name string) error {
			switch {
			case name == "r":
				return fail(classify.Transient)
			case request == 2:
				return failAfter(10 * time.Minute)
			}
			return nil
		}
		s := newTestSet(t, c, Options{
			MaxEntries: 1, MaxRequests: 1, MaxInFlight: 6, ManyQueues: true, QueueMax: 6, MaxElapsedTime: 30 * time.Second, Linger: time.Second,
			InitialInterval: 20 * time.Second, MaxInterval: 20 * time.Second, Jitter: func() float64 { return 0.99 },
		})
		s.Submit(t.Context(), onQueue("other", "o"))
		// The first retries, the second is in flight, the third, fourth and fifth wait, the fifth for room too.
		c.latency = 100 * time.Millisecond
		var calls []<-chan []error
		for _, names := range [][]string{{"r"}, {"a"}, {"b1", "b2"}, {"c1@g", "c2@g"}, {"d1", "d2", "d3"}} {
			calls = append(calls, submit(t.Context(), s, onQueue("q", names...)))
			synctest.Wait()
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		want(t, c.to("q"), "r", "a")
		wantResults(t, calls[1], "throttled")
		wantResults(t, calls[4], "throttled:paused throttled:paused throttled:paused")
		for _, i := range []int{0, 2, 3} {
			if returned(calls[i]) {
				t.Errorf("call %d has returned, want it to wait", i)
			}
		}

		// One more is one too many, until the service asks for less.
		start := time.Now()
		errs := s.Submit(t.Context(), onQueue("q", "e"))
		e := classify.Of(errs[0])
		if took := time.Since(start); took != 0 || e == nil || e.RetryAfter != 10*time.Minute {
			t.Errorf("%v after %v, want throttled at once with 10m to wait", e, took)
		}
		const text = `throttled: batcher paused: not sent: the service asks to wait for another 10m0s, longer than max_elapsed_time (30s), and as many writes as may (half of max_in_flight) wait for such queues already; give the queue an output of its own; the service said "throttled: test"`
		if e.Error() != text {
			t.Errorf("text %q, want %q", e, text)
		}
		if got := classes(s.Submit(t.Context(), onQueue("other", "o"))); got != "ok" {
			t.Errorf("the other queue: %q", got)
		}
		time.Sleep(9*time.Minute + 30*time.Second)
		last := submit(t.Context(), s, onQueue("q", "f"))
		synctest.Wait()
		wantResults(t, calls[0], "transient") // at its own limit
		if returned(last) {
			t.Error("what could be sent within the limit has returned")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		wantResults(t, calls[2], "ok ok")
		wantResults(t, calls[3], "ok ok")
		wantResults(t, last, "ok")
	})
}

// Queues that may not be sent to for ten minutes, behind one in ten of the messages, or behind the first
// 300: they must not come to occupy all the writes that the output may make at once.
func TestPausedQueuesLeaveTheWritesToOthers(t *testing.T) {
	for _, tt := range []struct {
		paused int
		first  bool
	}{{1, false}, {3, false}, {1, true}} {
		t.Run(fmt.Sprintf("paused=%d/first=%v", tt.paused, tt.first), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const writes, length = 128, 30 * time.Second
				send := func(_ context.Context, queue string, values []string) []error {
					time.Sleep(10 * time.Millisecond)
					errs := make([]error, len(values))
					if queue != "sound" {
						for i := range errs {
							errs[i] = failAfter(10 * time.Minute)
						}
					}
					return errs
				}
				s, err := NewSet(send, Options{MaxEntries: 10, MaxInFlight: writes, ManyQueues: true, MaxElapsedTime: DefaultMaxElapsedTime})
				if err != nil {
					t.Fatal(err)
				}
				var next, lately, refused atomic.Int64
				began := time.Now()
				var wg sync.WaitGroup
				for range writes {
					wg.Go(func() {
						for time.Since(began) < length {
							i := int(next.Add(1))
							if tt.first && i > 300 || !tt.first && i%10 > 0 {
								if err := s.Submit(t.Context(), onQueue("sound", "x"))[0]; err != nil {
									t.Error(err)
								}
								if time.Since(began) > length-time.Second {
									lately.Add(1)
								}
								continue
							}
							e := classify.Of(s.Submit(t.Context(), onQueue(fmt.Sprint("paused", i/10%tt.paused), "x"))[0])
							if e == nil || e.Class != classify.Throttled {
								t.Errorf("%v, want throttled", e)
							}
							refused.Add(1)
							time.Sleep(10 * time.Millisecond) // whoever delivers it again takes a while
						}
					})
				}
				wg.Wait()
				t.Logf("%d delivered in the last second; %d refused in all", lately.Load(), refused.Load())
				// 64 writes at least, 10 ms each.
				if lately.Load() < 3200 {
					t.Errorf("%d delivered in the last second", lately.Load())
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if s.gauge.sitting != 0 || s.gauge.awaiting.Load() != 0 {
					t.Errorf("the gauge counts %d sitting, %d awaiting", s.gauge.sitting, s.gauge.awaiting.Load())
				}
			})
		})
	}
}

// One Submit for two such queues is one caller.
func TestACallerSitsOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(int, string) error { return failAfter(10 * time.Minute) }
		s := newTestSet(t, c, Options{MaxEntries: 1, MaxInFlight: 4, ManyQueues: true, MaxElapsedTime: 30 * time.Second})
		s.Submit(t.Context(), append(onQueue("a", "a"), onQueue("b", "b")...))
		var calls []<-chan []error
		for range 3 {
			calls = append(calls, submit(t.Context(), s, append(onQueue("a", "a"), onQueue("b", "b")...)))
			synctest.Wait()
		}
		if returned(calls[0]) || returned(calls[1]) || s.gauge.sitting != 2 {
			t.Errorf("%d sit it out, want the first two", s.gauge.sitting)
		}
		wantResults(t, calls[2], "throttled:paused throttled:paused")
	})
}

// Between filling the gauge and flushing, another caller may come to the queue that filled it.
func TestALateFlushForgetsNoQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := newTestSet(t, c, Options{MaxInFlight: 2, Linger: time.Hour})
		one := submit(t.Context(), s, onQueue("b", "b1"))
		synctest.Wait()
		s.gauge.flush(s.queues["b"].batcher) // of a caller of b who was overtaken
		two := submit(t.Context(), s, onQueue("a", "a1"))
		synctest.Wait()
		wantResults(t, one, "ok")
		wantResults(t, two, "ok")
	})
}

// Each of two flushes passes over the queue that it began in, and nobody else may for that reason.
func TestTwoFlushesLeaveNoQueueOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, newCloud(), Options{MaxInFlight: 4, Linger: time.Hour})
		submit(t.Context(), s, onQueue("a", "a1"))
		submit(t.Context(), s, onQueue("b", "b1"))
		synctest.Wait()
		a, b := s.queues["a"].batcher, s.queues["b"].batcher
		if first, second := s.gauge.next(a), s.gauge.next(b); first != b || second != a {
			t.Error("the two flushes do not nudge each other's queue")
		}
	})
}

// Twenty thousand queues that have nothing to send must not be looked at each time a call has come.
func TestOnlyQueuesThatLingerAreNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := newTestSet(t, c, Options{MaxInFlight: 2, Linger: time.Hour, IdleTimeout: time.Minute})
		listed := func() int {
			synctest.Wait()
			return s.gauge.queues.len
		}
		one := submit(t.Context(), s, onQueue("a", "a1"))
		if n := listed(); n != 1 {
			t.Errorf("%d queues to nudge, want 1", n)
		}
		two := submit(t.Context(), s, onQueue("b", "b1"))
		if n := listed(); n != 0 {
			t.Errorf("%d queues to nudge when all are sent, want none", n)
		}
		wantResults(t, one, "ok")
		wantResults(t, two, "ok")

		// What is dropped is off the list.
		ctx, cancel := context.WithCancel(t.Context())
		submit(ctx, s, onQueue("c", "c1"))
		if n := listed(); n != 1 {
			t.Errorf("%d queues to nudge, want 1", n)
		}
		cancel()
		time.Sleep(3 * time.Minute)
		if n := listed(); n != 0 {
			t.Errorf("%d queues to nudge after all were dropped, want none", n)
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
