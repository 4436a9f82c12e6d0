package batcher

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFullRequestLeavesAtOnce(t *testing.T) {
	for name, o := range map[string]Options{
		"entries":    {MaxEntries: 3},
		"bytes":      {MaxBytes: 3},
		"wire bytes": {MaxWireBytes: 7, RequestWireBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				b := newBatch(t, c, o)
				all := entries("a", "b", "c", "d")
				for i := range all {
					all[i].WireSize = 2
				}
				done := submit(t.Context(), b, all)
				synctest.Wait()
				want(t, c.sent(), "a b c")
				time.Sleep(DefaultLinger)
				synctest.Wait()
				want(t, c.sent(), "a b c", "d")
				wantResults(t, done, "ok ok ok ok")
			})
		})
	}
}

func TestLingerCountsFromTheOldestEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{Linger: 20 * time.Millisecond})
		submit(t.Context(), b, entries("a"))
		time.Sleep(15 * time.Millisecond)
		submit(t.Context(), b, entries("b"))
		time.Sleep(time.Second)
		want(t, c.sent(), "a b")
		if at := c.at(0); at != 20*time.Millisecond {
			t.Errorf("left after %v, want exactly 20ms", at)
		}
	})
}

// What waits behind its group cannot leave, so it must not send the others away early, and when it
// can leave it has lingered already.
func TestEntriesBehindTheirGroupDoNotCountForLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 50 * time.Millisecond
		b := newBatch(t, c, Options{Linger: 20 * time.Millisecond})
		submit(t.Context(), b, entries("g1@g"))
		time.Sleep(25 * time.Millisecond) // g1 has left at 20ms, is back at 70ms
		submit(t.Context(), b, entries("g2@g"))
		time.Sleep(15 * time.Millisecond)
		submit(t.Context(), b, entries("x")) // at 40ms: g2 will have lingered at 45ms, x at 60ms
		time.Sleep(time.Second)
		want(t, c.sent(), "g1", "x", "g2")
		if c.at(1) != 60*time.Millisecond || c.at(2) != 70*time.Millisecond {
			t.Errorf("x left after %v and g2 after %v, want 60ms and 70ms", c.at(1), c.at(2))
		}
	})
}

func TestNobodyLeftToAddFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{Linger: time.Minute, MaxInFlight: 2})
		one := submit(t.Context(), b, entries("a"))
		synctest.Wait()
		want(t, c.sent()) // the second call may still come
		two := submit(t.Context(), b, entries("b"))
		synctest.Wait()
		want(t, c.sent(), "a b")
		wantResults(t, one, "ok")
		wantResults(t, two, "ok")
	})
}

// A caller that waits for room can still add, so it does not count as waiting for results.
func TestCallerThatWaitsForRoomKeepsTheGaugeDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{Linger: time.Second, MaxInFlight: 1, QueueMax: 2})
		done := submit(t.Context(), b, entries("a", "b", "c"))
		synctest.Wait()
		want(t, c.sent())
		time.Sleep(time.Second)
		synctest.Wait()
		got := c.sent()
		slices.Sort(got)
		want(t, got, "a b", "c") // with c admitted nobody is left
		wantResults(t, done, "ok ok ok")
	})
}

// With one WriteBatch at a time, as ordered outputs have, a group must not linger between its
// requests.
func TestFlushIsALevelAndNotAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = time.Millisecond
		b := newBatch(t, c, Options{Linger: time.Minute, MaxInFlight: 1, MaxEntries: 2})
		done := submit(t.Context(), b, many(5, "e%d@g"))
		time.Sleep(3 * time.Millisecond)
		synctest.Wait()
		want(t, c.sent(), "e0 e1", "e2 e3", "e4")
		wantResults(t, done, "ok ok ok ok ok")
	})
}

func TestLargeEntryTravelsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{MaxBytes: 10})
		all := entries("a", "big", "b")
		all[1].Size = 11
		done := submit(t.Context(), b, all)
		time.Sleep(time.Second)
		got := c.sent()
		slices.Sort(got)
		want(t, got, "a", "b", "big")
		wantResults(t, done, "ok ok ok")
	})
}

// The start of the round moves: one tenant's thousand do not keep another's five waiting.
func TestFiveLeaveWithinTwoRequestsOfAThousand(t *testing.T) {
	for name, format := range map[string]string{
		"no groups":       "%s/%s%%d",
		"a group each":    "%s/%s%%d@%[1]s",
		"a hundred each":  "%s/%s%%d@%[1]s%%[1]d",
		"one group alone": "%s/%s%%d@%[1]s%%[1]d-",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.latency = 25 * time.Millisecond // with a key to itself, the quiet one lingers first
				b := newBatch(t, c, Options{MaxRequests: 1, OneGroupPerRequest: name == "a group each"})
				submit(t.Context(), b, many(1000, fmt.Sprintf(format, "loud", "l")))
				synctest.Wait()
				before := len(c.sent())
				few := submit(t.Context(), b, many(5, fmt.Sprintf(format, "quiet", "q")))
				time.Sleep(50 * time.Millisecond) // two more requests
				synctest.Wait()
				n := 0
				for _, r := range c.sent()[before : before+2] {
					n += strings.Count(r, "q")
				}
				if n != 5 {
					t.Errorf("%d of the five left within two requests: %q", n, c.sent())
				}
				time.Sleep(25 * time.Millisecond)
				synctest.Wait()
				wantResults(t, few, "ok ok ok ok ok")
			})
		})
	}
}

// What counts is entries, not groups: a tenant of five small groups is not worse off than one of large
// ones, whose every turn fills a request.
func TestFiveGroupsLeaveWithinTwoRequestsOfAHundredLargeOnes(t *testing.T) {
	for _, size := range []int{1, 5, 10} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("groups of %d, strict %v", size, strict), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCloud()
					c.latency = 10 * time.Millisecond
					b := newBatch(t, c, Options{MaxRequests: 1, MaxInFlight: 2, StrictOrder: strict})
					var loud []string
					for i := range 1000 {
						loud = append(loud, fmt.Sprintf("loud/l%d@l%d", i, i/size))
					}
					submit(t.Context(), b, entries(loud...))
					synctest.Wait()
					before := len(c.sent())
					submit(t.Context(), b, entries("quiet/q1@q1", "quiet/q2@q2", "quiet/q3@q3", "quiet/q4@q4", "quiet/q5@q5"))
					time.Sleep(20 * time.Millisecond) // two more requests
					synctest.Wait()
					if n := strings.Count(strings.Join(c.sent()[before:before+2], " "), "q"); n != 5 {
						t.Errorf("%d of the five left within two requests: %q", n, c.sent()[before:])
					}
				})
			})
		}
	}
}

func TestTenantsTakeTurnsInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{MaxEntries: 4})
		submit(t.Context(), b, entries("x/x1", "x/x2", "x/x3", "x/x4", "x/x5", "y/y1", "y/y2", "z/z1"))
		synctest.Wait()
		got := c.sent()
		slices.Sort(got) // they left together
		want(t, got, "x1 y1 z1 x2", "y2 x3 x4 x5")
	})
}

// Eight sources that each have a backlog use eight requests. One entry of each in every request
// would leave one request in flight at a time.
func TestGroupsWithABacklogFillTheirOwnRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.latency = 10 * time.Millisecond
		b := newBatch(t, c, Options{MaxRequests: 8})
		var all []Entry[string]
		for i := range 160 {
			all = append(all, entry(fmt.Sprintf("t%d/e%d@g%d", i%8, i, i%8)))
		}
		done := submit(t.Context(), b, all)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if n := len(c.sent()); n != 16 || c.most != 8 {
			t.Errorf("%d requests, %d in flight at once, want 16 and 8", n, c.most)
		}
		if !returned(done) {
			t.Error("160 entries of 8 groups took more than two round trips")
		}
	})
}

func TestOneGroupPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{OneGroupPerRequest: true, MaxEntries: 3})
		done := submit(t.Context(), b, entries("a1@a", "x", "b1@b", "a2@a", "y", "b2@b", "a3@a"))
		synctest.Wait()
		want(t, c.sent(), "a1 a2 a3") // full; the others linger
		time.Sleep(DefaultLinger)
		synctest.Wait()
		got := c.sent()[1:]
		slices.Sort(got)
		want(t, got, "b1 b2", "x y")
		wantResults(t, done, "ok ok ok ok ok ok ok")
	})
}

// One ordering key and strict order: there is nothing to wait for.
func TestStrictGroupDoesNotLingerWhenNothingCanJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		b := newBatch(t, c, Options{OneGroupPerRequest: true, StrictOrder: true, Linger: time.Minute})
		done := submit(t.Context(), b, entries("a1@a", "a2@a"))
		synctest.Wait()
		want(t, c.sent(), "a1", "a2")
		wantResults(t, done, "ok ok")
	})
}
