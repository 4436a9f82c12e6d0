package output_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// refuse37 makes the cloud refuse hook 3 for good and hook 7 for now, whatever request they are in.
func refuse37(p *pipeline) {
	named := func(id string) func(*localcloud.Entry) bool {
		return func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == id }
	}
	p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
		{If: named("id-3"), Do: localcloud.Refuse, Code: "InvalidMessageContents", SenderFault: true},
		{If: named("id-7"), Do: localcloud.Refuse, Code: "InternalError"},
	}}})
}

// quick keeps retries short, so that a lasting transient failure ends as one.
const quick = `
max_retries: 1
backoff: { initial_interval: 1ms, max_interval: 1ms }
`

// Two messages of ten are refused, one for good and one for now: exactly these two come back, however
// the ten are cut into transactions and whoever batches them. The engine's own batching layer keeps one
// error per transaction, and turns two failures into ten unless that error leads to the others.
func TestExactlyTheRefusedMessagesComeBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		batching string
		cut      func([]hook) [][]hook
	}{
		{"one transaction", "", func(h []hook) [][]hook { return [][]hook{h} }},
		{"one transaction, batching by the engine", "batching: { count: 10, period: 100ms }", func(h []hook) [][]hook { return [][]hook{h} }},
		{"one message per transaction", "", singly},
		{"one message per transaction, merged by batching", "batching: { count: 10, period: 100ms }", singly},
		{"five per transaction, merged by batching", "batching: { count: 10, period: 100ms }", func(h []hook) [][]hook { return [][]hook{h[:5], h[5:]} }},
		{"one transaction, cut by batching", "batching: { count: 4, period: 100ms }", func(h []hook) [][]hook { return [][]hook{h} }},
	} {
		t.Run(c.name+"/nacked", func(t *testing.T) {
			p := newPipeline(t, newScript(c.cut(numbered(10))...))
			refuse37(p)
			p.run(p.sqsYAML("hooks", quick+c.batching))
			if got := p.script.nackedHooks(); got != "3 7" {
				t.Errorf("nacked: %q, want 3 and 7; log:\n%s", got, p.logs)
			}
			if got := p.script.ackedCount(); got != 8 {
				t.Errorf("%d acked, want 8", got)
			}
			if got := p.stored("hooks"); len(got) != 8 || got["id-3"]+got["id-7"] != 0 {
				t.Errorf("stored: %v", got)
			}
		})
		t.Run(c.name+"/fallback", func(t *testing.T) {
			p := newPipeline(t, newScript(c.cut(numbered(10))...))
			refuse37(p)
			p.run(fallback(p.sqsYAML("hooks", quick+c.batching)))
			if slices.Sort(p.sink.got); strings.Join(p.sink.got, " ") != "3 7" {
				t.Errorf("the fallback got %q, want 3 and 7", p.sink.got)
			}
			if slices.Sort(p.sink.errs); len(p.sink.errs) != 2 ||
				!strings.HasPrefix(p.sink.errs[0], "permanent: sqs 200 InvalidMessageContents") || !strings.HasPrefix(p.sink.errs[1], "transient: sqs 200 InternalError") {
				t.Errorf("fallback_error: %q", p.sink.errs)
			}
			if got := p.script.ackedCount(); got != 10 {
				t.Errorf("%d acked, want all 10: the fallback took what was refused", got)
			}
		})
		t.Run(c.name+"/replayed", func(t *testing.T) {
			p := newPipeline(t, newScript(c.cut(numbered(10))...))
			p.script.replay = true
			named := func(id string) func(*localcloud.Entry) bool {
				return func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == id }
			}
			// Each is refused until the input's replay: hook 3 once, hook 7 at its first send and its retry.
			for _, f := range []struct {
				id, code string
				times    int
			}{{"id-3", "InvalidMessageContents", 1}, {"id-7", "InternalError", 2}} {
				p.sqs.Faults.Add(localcloud.Fault{
					Name: f.id, Action: "SendMessageBatch", Times: f.times,
					If: func(c *localcloud.Call) bool {
						return slices.ContainsFunc(c.Entries, func(e localcloud.Entry) bool { return named(f.id)(&e) })
					},
					Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{If: named(f.id), Do: localcloud.Refuse, Code: f.code}}},
				})
			}
			p.run(p.sqsYAML("hooks", quick+c.batching))
			stored := p.stored("hooks")
			for i := range numbered(10) {
				if id := numbered(10)[i].meta["ankusa_id"]; stored[id] != 1 {
					t.Errorf("%s is stored %d times, want once", id, stored[id])
				}
			}
			if got := p.script.ackedCount(); got != 10 || len(p.script.nacked) != 0 {
				t.Errorf("%d acked, %d nacked behind the replay, want 10 and 0", got, len(p.script.nacked))
			}
		})
	}
}
