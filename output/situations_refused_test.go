package output_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// refuse61 makes one hook of a hundred, number 61, one that is refused for good: by the service, or here.
func refuse61(p *pipeline, sqs bool, hooks []hook, by string) {
	if by == "us" {
		hooks[61].meta["ankusa_source_id"] = "no source"
		return
	}
	code := map[bool]string{true: "InvalidMessageContents", false: "INVALID_ARGUMENT"}[sqs]
	p.faults(sqs).Add(localcloud.Fault{Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{
		If: func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == "id-61" }, Do: localcloud.Refuse, Code: code,
	}}}})
}

// advice begins what the log says, once, about a message that is refused for good.
const advice = "A message was refused for good"

// With a fallback the refused one arrives there, once and with its class, and the others arrive.
func TestRefusedForGoodReachesTheFallbackOnce(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		for _, by := range []string{"the service", "us"} {
			for _, replay := range []bool{false, true} {
				t.Run(fmt.Sprintf("by %s, replay=%v", by, replay), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						hooks := numbered(100)
						p := newPipedPipeline(t, newScript(hooks))
						p.script.replay = replay
						refuse61(p, sqs, hooks, by)
						p.run(fallback(p.yaml(sqs, "")))
						checkOnce(t, p.arrived(sqs), 0, 100, 61)
						checkDone(t, p, 100)
						if len(p.sink.got) != 1 || p.sink.got[0] != "61" || !strings.HasPrefix(p.sink.errs[0], "permanent: ") {
							t.Errorf("the fallback got %q with %q, want 61 once, and permanent", p.sink.got, p.sink.errs)
						}
					})
				})
			}
		}
	})
}

// Without one, and with an input that leaves it at a nack, it is nacked alone. The log says what to
// configure, and says it once however often this happens.
func TestRefusedForGoodWithoutFallbackIsNackedAlone(t *testing.T) {
	bothClouds(t, func(t *testing.T, sqs bool) {
		synctest.Test(t, func(t *testing.T) {
			hooks := numbered(100)
			hooks[5].meta["ankusa_source_id"] = "no source"
			p := newPipedPipeline(t, newScript(hooks[:50], hooks[50:]))
			refuse61(p, sqs, hooks, "the service")
			p.start(p.script, p.yaml(sqs, "")).wait()
			checkOnce(t, p.arrived(sqs), 0, 100, 5, 61)
			if p.script.nackedHooks() != "5 61" || p.script.nackedTimes() != 2 || p.script.ackedCount() != 98 {
				t.Errorf("nacked %q, %d acked", p.script.nackedHooks(), p.script.ackedCount())
			}
			logs := p.logs.String()
			if strings.Count(logs, advice) != 1 || !strings.Contains(logs, "fallback") {
				t.Errorf("the log gives its advice %d times, want once:\n%s", strings.Count(logs, advice), logs)
			}
		})
	})
}

// With an input that replays it comes again and again. The others flow, the engine's pauses grow to a
// second, and the advice is still given once. After two minutes somebody mends what was wrong.
func TestRefusedForGoodWithReplayIsPaced(t *testing.T) {
	for _, c := range []struct {
		sqs bool
		by  string
	}{{true, "the service"}, {true, "us"}, {false, "the service"}} {
		t.Run(fmt.Sprintf("sqs=%v by %s", c.sqs, c.by), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := numbered(100)
				p := newPipedPipeline(t, newScript(hooks))
				p.script.replay = true
				fields := ""
				if c.by == "us" { // without a request that would take time
					fields = fmt.Sprintf(`hook: { source_id: '${! if @n == "61" && timestamp_unix() < %d { "no source" } else { "test" } }' }`, time.Now().Unix()+122)
				} else {
					refuse61(p, c.sqs, hooks, c.by)
				}
				r := p.start(p.script, p.yaml(c.sqs, fields))
				tries := func() int { return strings.Count(p.logs.String(), "Failed to send message") }

				time.Sleep(time.Second)
				synctest.Wait()
				checkOnce(t, p.arrived(c.sqs), 0, 100, 61)
				first := tries()
				time.Sleep(time.Minute)
				synctest.Wait()
				before := tries()
				time.Sleep(time.Minute)
				synctest.Wait()
				last := tries() - before
				t.Logf("%d tries in the first second, %d in all after a minute, %d in the minute after that", first, before, last)
				// At the end of their growth pauses are a second on average, half or one and a half at most.
				if last < 40 || last > 120 {
					t.Errorf("%d tries in the second minute, want about one each second", last)
				}
				if first < 4 { // which two tries a second at most are not: pauses grow
					t.Errorf("%d tries in the first second, want four or more", first)
				}
				if n := strings.Count(p.logs.String(), advice); n != 1 {
					t.Errorf("the advice is given %d times, want once", n)
				}
				checkOnce(t, p.arrived(c.sqs), 0, 100, 61)
				if p.script.ackedCount() != 0 {
					t.Errorf("acked %q: the transaction holds one that is not stored", p.script.ackedHooks())
				}
				p.faults(c.sqs).Clear()
				r.wait()
				checkOnce(t, p.arrived(c.sqs), 0, 100)
				checkDone(t, p, 100)
			})
		})
	}
}
