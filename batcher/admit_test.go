package batcher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

func waiting[T any](b *Batcher[T]) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.entries
}

func TestHundredThousandOfOneTenantJustTakeTheirTime(t *testing.T) {
	for name, format := range map[string]string{"no order": "e%d", "one hot group": "e%d@g"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.latency = 10 * time.Millisecond
				b := newBatch(t, c, Options{})
				const n = 100_000
				start := time.Now()
				for i, err := range b.Submit(t.Context(), many(n, format)) {
					if err != nil {
						t.Fatalf("entry %d: %v", i, err)
					}
				}
				// Ten to a request; eight requests side by side, or one for the group.
				want := n / 10 / 8 * 10 * time.Millisecond
				if format == "e%d@g" {
					want *= 8
				}
				if got := time.Since(start); got != want {
					t.Errorf("took %v, want exactly %v", got, want)
				}
			})
		})
	}
}

func TestEntriesWaitForRoomBelowEachCeiling(t *testing.T) {
	for name, o := range map[string]Options{
		"entries": {QueueMax: 3},
		"bytes":   {QueueMaxBytes: 3},
		"tenant":  {QueueTenantMax: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				o.Linger = time.Second
				b := newBatch(t, c, o)
				done := submit(t.Context(), b, many(5, "e%d"))
				synctest.Wait()
				other := submit(t.Context(), b, entries("other/x"))
				synctest.Wait()
				if w := waiting(b); name != "tenant" && w != 3 || name == "tenant" && w != 4 {
					t.Errorf("%d entries admitted; a tenant's ceiling is its own, the others everyone's", w)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				wantResults(t, done, "ok ok ok ok ok")
				wantResults(t, other, "ok")
			})
		})
	}
}

func TestEntryLargerThanTheQueueWaitsUntilItIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{QueueMaxBytes: 10})
		all := entries("a", "huge", "b")
		all[1].Size = 11
		done := submit(t.Context(), b, all)
		time.Sleep(time.Second)
		want(t, c.sent(), "a", "huge", "b")
		wantResults(t, done, "ok ok ok")
	})
}

// Entries that wait for a retry come back although their room has been taken, and count until
// they leave: the queue takes nothing new as long.
func TestRetriesCountTowardsTheCeilings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 10 * time.Millisecond
		c.script = func(request int, _ string) error {
			if request == 0 {
				return fail(classify.Transient)
			}
			return nil
		}
		b := newBatch(t, c, Options{MaxEntries: 2, QueueMax: 2, MaxRequests: 1})
		done := submit(t.Context(), b, many(6, "e%d"))
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		// e0 e1 are back, and e2 e3, which took their room, have left.
		if got := waiting(b); got != 2 {
			t.Errorf("%d waiting, want 2", got)
		}
		want(t, c.sent(), "e0 e1", "e2 e3")
		time.Sleep(time.Second)
		synctest.Wait()
		wantResults(t, done, "ok ok ok ok ok ok")
	})
}

// A call with 10,000 entries leaves room to one with three.
func TestCallersTakeTurnsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 10 * time.Millisecond
		b := newBatch(t, c, Options{QueueMax: 20, MaxRequests: 1})
		submit(t.Context(), b, many(10_000, "e%d"))
		synctest.Wait()
		small := submit(t.Context(), b, entries("other/a", "other/b", "other/c"))
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		wantResults(t, small, "ok ok ok")
	})
}

func TestCancelledSubmitWithdrawsWhatHasNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 500 * time.Millisecond
		b := newBatch(t, c, Options{MaxEntries: 2, MaxRequests: 1, QueueMax: 3})
		ctx, cancel := context.WithCancel(t.Context())
		// a b leave; c d e wait; f waits for room.
		done := submit(ctx, b, entries("a", "b", "c", "d", "e", "f"))
		synctest.Wait()
		other := submit(t.Context(), b, entries("x"))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if returned(done) {
			t.Error("a request that has left is not awaited")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		errs := <-done
		if got := classes(errs); got != "ok ok transient:cancelled transient:cancelled transient:cancelled transient:cancelled" {
			t.Errorf("results %q", got)
		}
		if e := classify.Of(errs[2]); e.Err != context.Canceled {
			t.Errorf("withdrawn with %v, want ctx's error", e.Err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, c.sent(), "a b", "x")
		wantResults(t, other, "ok")
	})
}

// One caller's cancel neither ends a request that another shares nor fails the entries behind its
// own.
func TestCancelFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 10 * time.Second
		b := newBatch(t, c, Options{MaxInFlight: 2, CancelGrace: 2 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		gone := submit(ctx, b, entries("a@g", "x"))
		synctest.Wait()
		stays := submit(t.Context(), b, entries("b@g"))
		synctest.Wait()
		want(t, c.sent(), "a b x") // a group's turn takes all of it
		start := time.Now()
		cancel()
		errs := <-gone
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("returned after %v, want exactly the grace of 2s", got)
		}
		if got := classes(errs); got != "transient:outcome_unknown transient:outcome_unknown" {
			t.Errorf("results %q", got)
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		wantResults(t, stays, "ok")
	})
}

func TestSubmitWithAnEndedContextSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{MaxEntries: 1})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := classes(b.Submit(ctx, entries("a"))); got != "transient:cancelled" {
			t.Errorf("results %q", got)
		}
		want(t, c.sent())
	})
}
