package output_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// slowly is the latency of a cloud that is ten milliseconds away.
func slowly(p *pipeline) {
	p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Effect: localcloud.Effect{Wait: 10 * time.Millisecond}})
}

// tenants makes n hooks of 64 tenants in turn, each tenant a FIFO group of its own.
func tenants(n int) []hook {
	out := numbered(n)
	for i := range out {
		out[i].meta["ankusa_tenant_id"] = fmt.Sprintf("tenant-%02d", i%64)
	}
	return out
}

// chunks cuts hooks into transactions of size n.
func chunks(hooks []hook, n int) (out [][]hook) {
	for len(hooks) > 0 {
		n := min(n, len(hooks))
		out, hooks = append(out, hooks[:n]), hooks[n:]
	}
	return out
}

// checkOrder checks that every hook is stored once and, when ordered, that each group's hooks are stored in the order of n.
func checkOrder(t *testing.T, messages []localsqs.StoredMessage, want int, ordered bool) {
	t.Helper()
	seen := map[string]int{}
	last := map[string]int{}
	for _, m := range messages {
		id := m.Attributes["ankusa_id"]
		seen[id]++
		n, err := strconv.Atoi(id[len("id-"):])
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := last[m.Group]; ordered && ok && before > n {
			t.Errorf("group %s: %d is stored after %d", m.Group, n, before)
		}
		last[m.Group] = n
	}
	if len(seen) != want || len(messages) != want {
		t.Errorf("%d messages stored, %d different ones, want %d, each once", len(messages), len(seen), want)
	}
}

// One write at a time, sixty-four groups: the write has to keep many requests busy side by side while
// each group has one in flight. Time is the bubble's, so the average is the scheduler's doing and not
// the machine's.
func TestFIFOGroupsSideBySideInOrder(t *testing.T) {
	for _, size := range []int{1, 64, 100, 320} {
		t.Run(fmt.Sprintf("transactions of %d", size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 6400
				p := newPipedPipeline(t, newScript(chunks(tenants(n), size)...))
				slowly(p)
				p.run(p.sqsYAML("hooks.fifo", "max_in_flight: 1"))
				checkOrder(t, p.sqs.Messages("hooks.fifo"), n, true)
				s := p.sqs.Stats("hooks.fifo")
				t.Logf("%d requests, %.1f entries per request, %.2f in flight on average, at most %d; at most %d of one group",
					s.Requests, s.EntriesPerRequest(), s.AverageInFlight, s.MaxInFlight, s.MaxInFlightPerGroup)
				if s.MaxInFlightPerGroup != 1 {
					t.Errorf("%d requests of one group in flight, want 1", s.MaxInFlightPerGroup)
				}
				if s.AverageInFlight < 6 {
					t.Errorf("%.2f requests in flight on average, want at least 6", s.AverageInFlight)
				}
				if p.script.ackedCount() != n {
					t.Errorf("%d acked, want %d", p.script.ackedCount(), n)
				}
			})
		})
	}
}

// One hook per transaction, 128 in flight: nobody forms a batch but the scheduler.
func TestSingleMessageTransactionsShareRequests(t *testing.T) {
	const n = 5000
	p := newPipeline(t, newScript(singly(numbered(n))...))
	slowly(p)
	p.run(p.sqsYAML("hooks", ""))
	checkOrder(t, p.sqs.Messages("hooks"), n, false)
	s := p.sqs.Stats("hooks")
	t.Logf("%d requests, %.2f entries per request", s.Requests, s.EntriesPerRequest())
	if s.EntriesPerRequest() < 8 {
		t.Errorf("%.2f entries per request, want at least 8", s.EntriesPerRequest())
	}
}

// A bad day: one entry in twenty fails for now, one request in twenty is throttled.
func TestBadDayKeepsEveryHookAndTheOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		fields  string
		ordered bool // every group in order; by default a partial failure inside one request may reorder its ten
	}{
		{"strict order", "batch: { strict_order: true }", true},
		{"default", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 3200
			p := newPipeline(t, newScript(chunks(tenants(n), 100)...))
			p.sqs.Faults.Seed(7)
			slowly(p)
			p.sqs.Faults.Add(localcloud.Fault{Name: "throttle", Action: "SendMessageBatch", Chance: 0.05, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 400, Code: "RequestThrottled"}}})
			var turn atomic.Int64
			p.sqs.Faults.Add(localcloud.Fault{Name: "entries", Action: "SendMessageBatch", Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{
				If: func(*localcloud.Entry) bool { return turn.Add(1)%20 == 0 }, Do: localcloud.Refuse, Code: "InternalError",
			}}}})
			p.run(p.sqsYAML("hooks.fifo", "backoff: { initial_interval: 5ms, max_interval: 20ms }\n"+c.fields))
			checkOrder(t, p.sqs.Messages("hooks.fifo"), n, c.ordered)
			if p.script.ackedCount() != n || p.script.nackedHooks() != "" {
				t.Errorf("%d acked, nacked %q; want all %d acked", p.script.ackedCount(), p.script.nackedHooks(), n)
			}
			fired := map[string]int{}
			for _, f := range p.sqs.Faults.Fired() {
				fired[f.Name]++
			}
			if fired["throttle"] == 0 || turn.Load() < n {
				t.Errorf("the script hardly struck: %v, %d entries", fired, turn.Load())
			}
		})
	}
}
