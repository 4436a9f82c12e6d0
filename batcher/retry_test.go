package batcher

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	o := Options{InitialInterval: 100 * time.Millisecond, MaxInterval: 10 * time.Second}
	for _, tt := range []struct {
		n    int
		draw float64
		want time.Duration
	}{
		{0, 0, 0},
		{0, 0.5, 50 * time.Millisecond},
		{0, 1, 100 * time.Millisecond},
		{1, 1, 200 * time.Millisecond},
		{6, 1, 6400 * time.Millisecond},
		{7, 1, 10 * time.Second},   // 12.8 s would pass the maximum
		{7, 0.5, 5 * time.Second},  // the draw is over all of it
		{61, 1, 10 * time.Second},  // 2^61 no longer fits
		{100, 1, 10 * time.Second}, // nor does the shift
	} {
		if got := o.backoff(tt.n, tt.draw); got != tt.want {
			t.Errorf("backoff(%d, %v) = %v, want %v", tt.n, tt.draw, got, tt.want)
		}
	}
}

func TestRetriesEnd(t *testing.T) {
	always := func(err error) func(int, string) error {
		return func(int, string) error { return err }
	}
	for name, tt := range map[string]struct {
		o      Options
		script func(int, string) error
		sends  int
		took   time.Duration
		want   string
	}{
		"permanent at once": {script: always(fail(classify.Permanent)), sends: 1, want: "permanent"},
		"config at once":    {script: always(fail(classify.Config)), sends: 1, want: "config"},
		"after max_retries": {
			o: Options{MaxRetries: 2}, script: always(fail(classify.Transient)),
			sends: 3, took: 150 * time.Millisecond, want: "transient", // 50ms + 100ms
		},
		// 50, 100 and 200 ms make 350; the next wait of 400 is cut to the 150 that are left.
		"after max_elapsed_time, with a last try at its end": {
			o: Options{MaxElapsedTime: 500 * time.Millisecond}, script: always(fail(classify.Transient)),
			sends: 5, took: 500 * time.Millisecond, want: "transient",
		},
		// Of what is left after 350 ms the queue's next pause, 400 ms, is more.
		"throttled, when the queue is paused beyond max_elapsed_time": {
			o: Options{MaxElapsedTime: 500 * time.Millisecond}, script: always(fail(classify.Throttled)),
			sends: 4, took: 350 * time.Millisecond, want: "throttled",
		},
		"Retry-After within the time left": {
			o: Options{MaxElapsedTime: time.Second, MaxRetries: 1}, script: always(failAfter(time.Second)),
			sends: 2, took: time.Second, want: "throttled",
		},
		"Retry-After past the time left": {
			o: Options{MaxElapsedTime: time.Second}, script: always(failAfter(1001 * time.Millisecond)),
			sends: 1, want: "throttled",
		},
		"Retry-After without a limit": {
			o: Options{MaxRetries: 1}, script: always(failAfter(time.Hour)),
			sends: 2, took: time.Hour, want: "throttled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.script = tt.script
				tt.o.MaxEntries = 1
				b := newBatch(t, c, tt.o)
				start := time.Now()
				if got := classes(b.Submit(t.Context(), entries("a"))); got != tt.want {
					t.Errorf("result %q, want %q", got, tt.want)
				}
				if n, took := len(c.sent()), time.Since(start); n != tt.sends || took != tt.took {
					t.Errorf("%d sends in %v, want %d in %v", n, took, tt.sends, tt.took)
				}
			})
		})
	}
}

// What another entry's Retry-After, or a busy queue, keeps from its retry fails when its own time is up.
func TestARetryThatCannotLeaveFailsAtItsLimit(t *testing.T) {
	for name, tt := range map[string]struct{ group string }{"without a group": {""}, "of a group": {"@g"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.script = func(request int, name string) error {
					switch {
					case request == 0:
						return fail(classify.Transient)
					case request == 1:
						return failAfter(9500 * time.Millisecond)
					}
					return nil
				}
				b := newBatch(t, c, Options{
					MaxEntries: 1, MaxElapsedTime: 10 * time.Second, InitialInterval: 8 * time.Second,
				})
				returnedAt := func(name string) func() time.Duration {
					at := time.Duration(-1)
					go func() {
						errs := b.Submit(t.Context(), entries(name))
						at = time.Since(c.began)
						if e := classify.Of(errs[0]); name == "a"+tt.group && (e == nil || e.Class != classify.Transient || e.Service != "test") {
							t.Errorf("%s: %v, want its last failure", name, errs[0])
						} else if name == "b" && e != nil {
							t.Errorf("%s: %v, want success", name, errs[0])
						}
					}()
					return func() time.Duration { synctest.Wait(); return at }
				}
				a := returnedAt("a" + tt.group) // its retry is due after 4 s
				time.Sleep(time.Second)
				bb := returnedAt("b") // may be sent again after 10.5 s
				time.Sleep(time.Second)
				behind := returnedAt("c" + tt.group) // of a's group: fails with it
				time.Sleep(20 * time.Second)
				// A last try at the limit itself would have been made.
				if got := a(); got != 10*time.Second+1 {
					t.Errorf("a failed after %v, want 10s and 1ns", got)
				}
				if got := bb(); got != 10500*time.Millisecond {
					t.Errorf("b was taken after %v, want 10.5s", got)
				}
				wantBehind := 10500 * time.Millisecond
				if tt.group != "" {
					wantBehind = 10*time.Second + 1
				}
				if got := behind(); got != wantBehind {
					t.Errorf("c came back after %v, want %v", got, wantBehind)
				}
			})
		})
	}
}

// Ten draws for ten entries would come back as ten requests.
func TestWhatFailsTogetherComesBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = func(request int, _ string) error {
			if request < 3 {
				return fail(classify.Transient)
			}
			return nil
		}
		draw := 0.1
		b := newBatch(t, c, Options{Jitter: func() float64 { draw += 0.1; return draw }})
		done := submit(t.Context(), b, many(10, "e%d"))
		time.Sleep(time.Minute)
		if n := len(c.sent()); n != 4 {
			t.Errorf("%d requests, want 4", n)
		}
		wantResults(t, done, strings.TrimSpace(strings.Repeat("ok ", 10)))
	})
}

// A retry shares its request with what waits, but does not linger for it.
func TestRetryLeavesPromptlyAndTakesOthersAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.script = failing(classify.Transient, map[string]int{"a": 1})
		b := newBatch(t, c, Options{Linger: time.Second})
		submit(t.Context(), b, entries("a"))
		time.Sleep(1010 * time.Millisecond)
		submit(t.Context(), b, entries("b"))
		time.Sleep(5 * time.Second)
		want(t, c.sent(), "a", "a b")
		if at := c.at(1); at != 1050*time.Millisecond {
			t.Errorf("left after %v, want 1.05s", at)
		}
	})
}

func TestResultsOfAWrongShape(t *testing.T) {
	var typedNil *classify.Error
	for name, tt := range map[string]struct {
		first func() []error // for two entries; every later request is taken
		want  string
		sends int
	}{
		"too few":   {func() []error { return []error{nil} }, "ok ok", 2},
		"none":      {func() []error { return nil }, "ok ok", 2},
		"too many":  {func() []error { return make([]error, 3) }, "ok ok", 1},
		"nil Error": {func() []error { return []error{typedNil, nil} }, "ok ok", 2},
		"a panic":   {func() []error { panic("secret") }, "ok ok", 2},
		"Goexit":    {func() []error { runtime.Goexit(); return nil }, "ok ok", 2},
		"unknown":   {func() []error { return []error{errors.New("?"), nil} }, "ok ok", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				b, err := New("q", func(_ context.Context, _ string, values []string) []error {
					if n++; n == 1 {
						return tt.first()
					}
					return make([]error, len(values))
				}, Options{MaxEntries: 2})
				if err != nil {
					t.Fatal(err)
				}
				if got := classes(b.Submit(t.Context(), entries("a", "b"))); got != tt.want || n != tt.sends {
					t.Errorf("results %q after %d requests, want %q after %d", got, n, tt.want, tt.sends)
				}
				b.Close(t.Context())
			})
		})
	}
}

// What was in the panic's value may have been a hook's body.
func TestPanicNamesThePlaceAndNotTheValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New("q", func(context.Context, string, []string) []error { panic("secret") },
			Options{MaxEntries: 1, MaxRetries: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := b.Submit(t.Context(), entries("a"))[0].Error()
		if strings.Contains(got, "secret") || !strings.Contains(got, "TestPanicNamesThePlaceAndNotTheValue") {
			t.Errorf("error %q, want the function that panicked and not the value", got)
		}
		b.Close(t.Context())
	})
}
