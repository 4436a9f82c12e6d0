package batcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

func TestPaceHalvesOncePerRoundAndGrowsByWindows(t *testing.T) {
	o, err := Options{MaxEntries: 1, MaxRequests: 8, Jitter: func() float64 { return 1 }}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := pace{window: 8}
	throttled := []*classify.Error{nil, {Class: classify.Throttled}}
	sound := []*classify.Error{nil, {Class: classify.Permanent}}
	transient := []*classify.Error{{Class: classify.Transient}}
	for i, tt := range []struct {
		seq, last uint64
		results   []*classify.Error
		window    int
		paused    time.Duration
		why       string
	}{
		{1, 8, throttled, 4, 100 * time.Millisecond, "halved"},
		{2, 8, throttled, 4, 100 * time.Millisecond, "left before the halving: the same burst"},
		{3, 8, sound, 4, 100 * time.Millisecond, "left before it too: says nothing"},
		{9, 12, throttled, 2, 200 * time.Millisecond, "the next round, a pause twice as long"},
		{13, 14, throttled, 1, 400 * time.Millisecond, "the third"},
		{15, 15, throttled, 1, 800 * time.Millisecond, "one stays"},
		{16, 16, transient, 1, 800 * time.Millisecond, "is neither"},
		{17, 17, sound, 2, 800 * time.Millisecond, "a full window of one"},
		{18, 19, sound, 2, 800 * time.Millisecond, "half of a window of two"},
		{19, 19, sound, 3, 800 * time.Millisecond, "all of it"},
		{20, 20, throttled, 1, 100 * time.Millisecond, "success has ended the row of rounds"},
	} {
		if i == 10 {
			p.pausedUntil = 0
		}
		p.settled(tt.seq, tt.last, tt.results, &o, 0)
		if p.window != tt.window || p.pausedUntil != tt.paused {
			t.Errorf("%d (%s): window %d, paused until %v; want %d, %v", i, tt.why, p.window, p.pausedUntil, tt.window, tt.paused)
		}
	}
}

func TestRetryAfterPausesTheQueueAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(request int, name string) error {
			if request == 0 {
				return failAfter(3 * time.Second)
			}
			return nil
		}
		s := newTestSet(t, c, Options{MaxEntries: 1})
		slow := submit(t.Context(), s, onQueue("slow", "a"))
		synctest.Wait()
		behind := submit(t.Context(), s, onQueue("slow", "b"))
		other := submit(t.Context(), s, onQueue("other", "x"))
		synctest.Wait()
		wantResults(t, other, "ok")
		want(t, c.sent(), "a", "x")
		time.Sleep(3*time.Second - time.Nanosecond)
		synctest.Wait()
		want(t, c.sent(), "a", "x")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantResults(t, slow, "ok")
		wantResults(t, behind, "ok")
	})
}

// What has not been sent waits, in order, where no other queue wants for callers, limit or not.
func TestAPauseIsSatOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(request int, _ string) error {
			if request == 0 {
				return failAfter(10 * time.Minute)
			}
			return nil
		}
		b := newBatch(t, c, Options{MaxEntries: 1, MaxRequests: 1, MaxInFlight: 2, MaxElapsedTime: 30 * time.Second})
		if got := classes(b.Submit(t.Context(), entries("p"))); got != "throttled" {
			t.Errorf("the first: %q, want throttled at once", got)
		}
		done := submit(t.Context(), b, entries("a@g", "b@g"))
		time.Sleep(9 * time.Minute)
		late := submit(t.Context(), b, entries("c@g"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantResults(t, done, "ok ok")
		wantResults(t, late, "ok")
		want(t, c.sent(), "p", "a", "b", "c")
		if at := c.at(1); at != 10*time.Minute {
			t.Errorf("sent after %v, want 10m", at)
		}
	})
}

// A minute of 429 must not be answered with a storm, and nothing may be lost.
func TestAMinuteOfThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 5 * time.Millisecond
		c.script = func(int, string) error {
			if time.Since(c.began) < time.Minute {
				return fail(classify.Throttled)
			}
			return nil
		}
		b := newBatch(t, c, Options{})
		var calls []<-chan []error
		for range 64 {
			calls = append(calls, submit(t.Context(), b, many(10, "e%d")))
		}
		time.Sleep(time.Minute)
		// 8, 4 and 2 in flight, then one after each pause: of 400, 800, 1600, 3200 and then 5000 ms.
		if n := len(c.sent()); n > 8+4+2+5+11 {
			t.Errorf("%d requests in a minute of throttling", n)
		}
		time.Sleep(time.Minute)
		for _, done := range calls {
			wantResults(t, done, "ok ok ok ok ok ok ok ok ok ok")
		}
	})
}
