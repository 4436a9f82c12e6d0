package batcher

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// failing returns a script that fails the named entries, each as often as says.
func failing(class classify.Class, times map[string]int) func(int, string) error {
	return func(_ int, name string) error {
		if times[name] > 0 {
			times[name]--
			return fail(class)
		}
		return nil
	}
}

func TestGroupHasOneRequestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 10 * time.Millisecond
		b := newBatch(t, c, Options{MaxEntries: 2})
		done := submit(t.Context(), b, many(6, "e%d@g"))
		synctest.Wait()
		want(t, c.sent(), "e0 e1")
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		want(t, c.sent(), "e0 e1", "e2 e3")
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		want(t, c.sent(), "e0 e1", "e2 e3", "e4 e5")
		wantResults(t, done, "ok ok ok ok ok ok")
	})
}

func TestRetryLetsNoLaterEntryOfItsGroupPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = failing(classify.Transient, map[string]int{"a1": 1, "a3": 1})
		b := newBatch(t, c, Options{MaxEntries: 3, InitialInterval: 100 * time.Millisecond})
		done := submit(t.Context(), b, entries("a1@a", "a2@a", "a3@a", "a4@a", "b1@b", "b2@b", "b3@b"))
		time.Sleep(time.Second)
		// a2 was taken with the first request; what failed goes again, in order, before a4, and
		// b is not held up.
		got := c.sent()
		slices.Sort(got[:2]) // these two left together
		want(t, got, "a1 a2 a3", "b1 b2 b3", "a1 a3 a4")
		if at := c.at(2); at != 50*time.Millisecond {
			t.Errorf("retried after %v, want 50ms and no linger", at)
		}
		wantResults(t, done, "ok ok ok ok ok ok ok")
	})
}

func TestPermanentFailureFreesItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = failing(classify.Permanent, map[string]int{"e0": 1})
		b := newBatch(t, c, Options{MaxEntries: 2})
		done := submit(t.Context(), b, many(4, "e%d@g"))
		synctest.Wait()
		want(t, c.sent(), "e0 e1", "e2 e3")
		wantResults(t, done, "permanent ok ok ok")
	})
}

// The caller has read them all before it learns of the failure, and will send e0 again after them.
func TestGivingUpFailsWhatWaitsBehind(t *testing.T) {
	for class, times := range map[classify.Class]int{classify.Transient: 2, classify.Throttled: 2, classify.Config: 1} {
		t.Run(class.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.script = failing(class, map[string]int{"e0": times})
				b := newBatch(t, c, Options{MaxEntries: 1, MaxRetries: 1, QueueMax: 3})
				// e3 and e4 wait for room when e0 gives up, x is not of the group.
				done := submit(t.Context(), b, entries("e0@g", "e1@g", "e2@g", "e3@g", "x", "e4@g"))
				time.Sleep(time.Minute)
				wantResults(t, done, class.String()+" transient:held transient:held transient:held ok transient:held")
				// The group is not poisoned.
				again := submit(t.Context(), b, entries("e0@g"))
				time.Sleep(time.Minute)
				wantResults(t, again, "ok")
			})
		})
	}
}

func TestStrictOrderSendsOneEntryOfAGroupAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = failing(classify.Transient, map[string]int{"a1": 1})
		b := newBatch(t, c, Options{StrictOrder: true, MaxEntries: 3, MaxInFlight: 1})
		done := submit(t.Context(), b, entries("a1@a", "a2@a", "b1@b", "x"))
		time.Sleep(time.Second)
		want(t, c.sent(), "a1 b1 x", "a1", "a2")
		wantResults(t, done, "ok ok ok ok")
	})
}

// held says that an earlier entry of the group failed: it was not sent, so it has used no retry.
func TestHeldCostsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(request int, name string) error {
			switch {
			case request < 3 && name == "e0":
				return fail(classify.Transient)
			case request < 3:
				return &classify.Error{Class: classify.Transient, Service: "test", Code: CodeHeld}
			case request == 3 && name == "e1":
				return fail(classify.Transient)
			}
			return nil
		}
		b := newBatch(t, c, Options{MaxRetries: 3, MaxInFlight: 1})
		done := submit(t.Context(), b, many(2, "e%d@g"))
		time.Sleep(time.Minute)
		want(t, c.sent(), "e0 e1", "e0 e1", "e0 e1", "e0 e1", "e1")
		wantResults(t, done, "ok ok")
	})
}
