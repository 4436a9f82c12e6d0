package output_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// These tests stop a pipeline as the engine does on SIGTERM, with its default shutdown_timeout of 20 s,
// of which it leaves three quarters to a graceful end. In a bubble a goroutine that is left behind fails
// the test.

const shutdownTimeout = 20 * time.Second

// stop stops the stream after it has run for a while, and returns how long that took.
func (r *running) stop(after time.Duration) time.Duration {
	r.p.t.Helper()
	time.Sleep(after) // the bubble's time
	start := time.Now()
	err := r.stream.StopWithin(shutdownTimeout)
	took := time.Since(start)
	if err != nil {
		r.p.t.Errorf("stopping ended with %v after %v; log:\n%s", err, took, r.p.logs)
	}
	if took > shutdownTimeout {
		r.p.t.Errorf("stopping took %v, more than the shutdown_timeout %v", took, shutdownTimeout)
	}
	if err := <-r.ended; err != nil {
		r.p.t.Errorf("the stream ended with %v", err)
	}
	synctest.Wait()
	return took
}

// Three hooks wait for company that never comes, for a minute. What is not sent is not acked.
func TestStopWithALongLinger(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		for _, cut := range []struct {
			name string
			of   func([]hook) [][]hook
		}{{"three transactions", singly}, {"one transaction", func(h []hook) [][]hook { return [][]hook{h} }}} {
			t.Run(cut.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPipedPipeline(t, newScript(cut.of(numbered(3))...))
					r := p.start(&source{script: p.script, stays: true}, p.yaml(sqs, "batch: { linger: 60s }"))
					took := r.stop(time.Second)
					t.Logf("stopped after %v with %d requests; %d acked, %d nacks", took, p.requests(sqs), p.script.ackedCount(), p.script.nackedTimes())
					checkHonest(t, p, p.arrived(sqs))
					if n := len(p.arrived(sqs)); p.script.ackedCount() != n {
						t.Errorf("%d acked, %d stored", p.script.ackedCount(), n)
					}
					checkNoNoise(t, p)
				})
			})
		}
	})
}

// The same where the linger ends within the time that a graceful stop has: the hooks are delivered.
func TestStopWaitsForAShortLinger(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			p := newPipedPipeline(t, newScript(singly(numbered(3))...))
			r := p.start(&source{script: p.script, stays: true}, p.yaml(sqs, "batch: { linger: 10s }"))
			r.stop(time.Second)
			checkOnce(t, p.arrived(sqs), 0, 3)
			checkDone(t, p, 3)
		})
	})
}

// A request that has left is awaited, and what it brought is acked; what waits behind it is not.
func TestStopAwaitsTheRequestInFlight(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			p := newPipedPipeline(t, newScript(numbered(10)[:5], numbered(10)[5:]))
			p.faults(sqs).Add(localcloud.Fault{Effect: localcloud.Effect{Wait: 3 * time.Second}})
			r := p.start(&source{script: p.script, stays: true, pause: func(i int) time.Duration { return time.Duration(i) * 2 * time.Second }},
				p.yaml(sqs, "batch: { linger: 1s }\nmax_in_flight: 64"))
			// The first five leave at 1 s and are back at 4 s. The others come at 2 s, leave at 3 s and are
			// back at 6 s: they too are in flight when the signal comes.
			took := r.stop(3500 * time.Millisecond)
			checkOnce(t, p.arrived(sqs), 0, 10)
			checkDone(t, p, 10)
			if want := 2500 * time.Millisecond; took < want || took > want+time.Second {
				t.Errorf("stopped after %v, want %v: as soon as the last request is back", took, want)
			}
		})
	})
}

// A request that outlasts a graceful stop is awaited for a bounded time and then given up. Whatever
// became of it, it is not acked.
func TestStopGivesUpARequestThatNeverComesBack(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			p := newPipedPipeline(t, newScript(numbered(5)))
			p.faults(sqs).Add(localcloud.Fault{Effect: localcloud.Effect{Stall: true}})
			r := p.start(&source{script: p.script, stays: true}, p.yaml(sqs, "timeout: 5m"))
			r.stop(time.Second)
			if p.script.ackedCount() != 0 {
				t.Errorf("acked: %q, and nothing was stored", p.script.ackedHooks())
			}
		})
	})
}

// Hooks that wait for a retry are in nobody's hands: they are not acked.
func TestStopWithHooksThatWaitForARetry(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		for _, ordered := range []bool{false, true} {
			t.Run(fmt.Sprintf("ordered=%v", ordered), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPipedPipeline(t, newScript(singly(numbered(6))...))
					// Hooks 0 and 1 get through before the cloud goes.
					p.faults(sqs).Add(localcloud.Fault{If: func(c *localcloud.Call) bool { return c.Ordinal > 2 },
						Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 503, Code: map[bool]string{true: "ServiceUnavailable", false: "UNAVAILABLE"}[sqs]}}})
					queue, fields := "hooks", "max_retries: 0\nbackoff: { initial_interval: 1h, max_interval: 1h, max_elapsed_time: 0s }"
					if ordered && sqs {
						queue = "hooks.fifo"
					} else if ordered {
						fields += "\nordering_key: one"
					}
					yaml := p.pubsubYAML(queue, fields)
					if sqs {
						yaml = p.sqsYAML(queue, fields)
					}
					r := p.start(&source{script: p.script, stays: true, pause: func(int) time.Duration { return time.Second }}, yaml)
					r.stop(10 * time.Second)
					stored := p.published(queue)
					if sqs {
						stored = p.stored(queue)
					}
					checkHonest(t, p, stored)
					if got := p.script.ackedHooks(); got != "0 1" || len(stored) != 2 {
						t.Errorf("acked %q, stored %v; want the two that got through", got, stored)
					}
					checkNoNoise(t, p)
				})
			})
		}
	})
}

// checkNoNoise checks that a stop is no storm of errors: at most one line per write.
func checkNoNoise(t *testing.T, p *pipeline) {
	t.Helper()
	if lines := strings.Count(p.logs.String(), "\n"); lines > len(p.script.transactions) {
		t.Errorf("%d lines of log for %d writes:\n%s", lines, len(p.script.transactions), p.logs)
	}
}
