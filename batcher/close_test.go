package batcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A stop signal with a long linger: what is acked was accepted, the rest is not, and nothing waits
// for the linger.
func TestCloseSendsNothingNewAndAwaitsWhatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 3 * time.Second
		c.script = failing(classify.Transient, map[string]int{"b": 1})
		b := newBatch(t, c, Options{MaxEntries: 2, Linger: time.Minute, MaxRequests: 1, QueueMax: 3})
		// a b are in flight, c d e wait, f waits for room.
		done := submit(t.Context(), b, entries("a", "b", "c", "d", "e", "f"))
		synctest.Wait()
		start := time.Now()
		err := b.Close(t.Context())
		if got := time.Since(start); err != nil || got != 3*time.Second {
			t.Errorf("Close = %v after %v, want nil after exactly 3s", err, got)
		}
		errs := <-done
		if got := classes(errs); got != "ok transient transient:closed transient:closed transient:closed transient:closed" {
			t.Errorf("results %q", got)
		}
		if !errors.Is(errs[2], ErrClosed) {
			t.Errorf("result %v, want ErrClosed", errs[2])
		}
		want(t, c.sent(), "a b")

		if got := classes(b.Submit(t.Context(), entries("late"))); got != "transient:closed" {
			t.Errorf("after Close: %q", got)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("second Close = %v", err)
		}
	})
}

func TestCloseFailsWhatWaitsForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(int, string) error { return fail(classify.Transient) }
		b := newBatch(t, c, Options{MaxEntries: 1, InitialInterval: time.Hour, MaxInterval: time.Hour})
		done := submit(t.Context(), b, entries("a", "g1@g", "g2@g"))
		synctest.Wait()
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		errs := <-done
		if got := classes(errs); got != "transient:closed transient:closed transient:closed" {
			t.Errorf("results %q", got)
		}
		if !errors.Is(errs[0], ErrClosed) {
			t.Errorf("result %v, want ErrClosed", errs[0])
		}
	})
}

func TestForcedCloseCancelsTheSendsAndStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = time.Hour
		b := newBatch(t, c, Options{MaxEntries: 1})
		done := submit(t.Context(), b, entries("a"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := b.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("Close = %v after %v, want its ctx's error after 1s", err, time.Since(start))
		}
		synctest.Wait()
		wantResults(t, done, "transient")
		if c.inFlight != 0 {
			t.Error("a send outlives Close")
		}
	})
}

// After a forced stop the caller is gone, so that there is no one to wait for.
func TestCloseCancelsWhatNobodyAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = time.Hour
		s := newTestSet(t, c, Options{MaxEntries: 1})
		ctx, cancel := context.WithCancel(t.Context())
		done := submit(ctx, s, onQueue("x", "a"))
		synctest.Wait()
		cancel()
		time.Sleep(DefaultCancelGrace)
		synctest.Wait()
		wantResults(t, done, "transient:outcome_unknown")
		start := time.Now()
		if err := s.Close(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("Close = %v after %v, want nil at once", err, time.Since(start))
		}
		if c.inFlight != 0 {
			t.Error("a send outlives Close")
		}
	})
}

// The same when Close has begun before the caller's time is up.
func TestCloseAwaitsACallerAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = time.Hour
		b := newBatch(t, c, Options{MaxEntries: 1})
		ctx, cancel := context.WithCancel(t.Context())
		done := submit(ctx, b, entries("a"))
		synctest.Wait()
		cancel()
		time.Sleep(time.Second)
		start := time.Now()
		if err := b.Close(t.Context()); err != nil || time.Since(start) != time.Second {
			t.Errorf("Close = %v after %v, want nil after the second that is left", err, time.Since(start))
		}
		synctest.Wait()
		wantResults(t, done, "transient:outcome_unknown")
	})
}
