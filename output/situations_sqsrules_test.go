package output_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// The same body twice, one second apart, is two events: a provider that says "paid" twice means it. A
// FIFO queue that went by the body would swallow the second.
func TestIdenticalEventsAreTwo(t *testing.T) {
	for _, c := range []struct {
		name string
		meta func(i int) map[string]string
		yaml string
	}{
		{"ids by metadata", func(i int) map[string]string {
			return map[string]string{"n": fmt.Sprint(i), "ankusa_source_id": "test", "ankusa_id": fmt.Sprintf("id-%d", i)}
		}, ""},
		{"ids from the input's position", func(i int) map[string]string {
			return map[string]string{"n": fmt.Sprint(i), "ankusa_source_id": "test", "topic": "hooks", "offset": fmt.Sprint(i)}
		}, "hook: { id: '${! @topic }/${! @offset }' }"},
		{"no ids", func(i int) map[string]string {
			return map[string]string{"n": fmt.Sprint(i), "ankusa_source_id": "test"}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := []hook{{body: "paid", meta: c.meta(0)}, {body: "paid", meta: c.meta(1)}}
				p := newPipedPipeline(t, newScript(singly(hooks)...))
				r := p.start(&source{script: p.script, pause: func(int) time.Duration { return time.Second }}, p.sqsYAML("hooks.fifo", c.yaml))
				r.wait()
				m := p.sqs.Messages("hooks.fifo")
				if len(m) != 2 || m[0].DeduplicationID == m[1].DeduplicationID {
					t.Fatalf("%d stored, want two with ids of their own", len(m))
				}
				if at := m[1].Sent.Sub(m[0].Sent); at < time.Second {
					t.Errorf("the second came after %v: the pause did nothing", at)
				}
				checkDone(t, p, 2)
			})
		})
	}
}

// An answer that is lost on the wire leaves a stored message behind. The resend is the same event.
func TestLostReplyIsStoredOnce(t *testing.T) {
	lost := func(p *pipeline, times int) {
		p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Times: times, Effect: localcloud.Effect{Stored: true, Cut: true}})
	}
	for _, meta := range []string{"ankusa_id", ""} {
		t.Run("id="+meta, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := numbered(1)
				if meta == "" {
					delete(hooks[0].meta, "ankusa_id") // a minted id lives through the retries of one write
				}
				p := newPipedPipeline(t, newScript(hooks))
				lost(p, 3)
				p.run(p.sqsYAML("hooks.fifo", ""))
				s := p.sqs.Stats("hooks.fifo")
				if s.Messages != 1 || s.Duplicates != 3 || s.Requests != 4 {
					t.Errorf("%d stored, %d duplicates, %d requests; want 1, 3, 4", s.Messages, s.Duplicates, s.Requests)
				}
				checkDone(t, p, 1)
			})
		})
	}
}

// When the output gives up, the input delivers the hook again: with a stable id it is still one event.
func TestRedeliveryKeepsTheDeduplicationID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedPipeline(t, newScript(numbered(3)))
		p.script.replay = true
		p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Times: 3, Effect: localcloud.Effect{Stored: true, Cut: true}})
		p.run(p.sqsYAML("hooks.fifo", quick))
		s := p.sqs.Stats("hooks.fifo")
		if s.Requests != 4 || s.Messages != 3 || s.Duplicates != 9 {
			t.Errorf("%d requests, %d stored, %d duplicates; want 4, 3, 9", s.Requests, s.Messages, s.Duplicates)
		}
		checkOrder(t, p.sqs.Messages("hooks.fifo"), 3, true)
		if !strings.Contains(p.logs.String(), "transient") {
			t.Errorf("the output did not give up in between; log:\n%s", p.logs)
		}
	})
}

// On a standard queue a group id is a tenant's label for fair queues. It is sent, and holds nothing up.
func TestGroupOnAStandardQueueIsALabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		p := newPipedPipeline(t, newScript(numbered(n)))
		slowly(p)
		p.run(p.sqsYAML("q", "message_group_id: one-tenant"))
		checkOnce(t, p.stored("q"), 0, n)
		checkDone(t, p, n)
		for _, m := range p.sqs.Messages("q") {
			if m.Group != "one-tenant" || m.DeduplicationID != "" {
				t.Fatalf("group %q, deduplication id %q; want the label and none", m.Group, m.DeduplicationID)
			}
		}
		if s := p.sqs.Stats("q"); s.MaxInFlightPerGroup != 8 {
			t.Errorf("%d requests of the group in flight, want all 8 that may be", s.MaxInFlightPerGroup)
		}
	})
}

// One that fails for now must not hold the others of its label either.
func TestGroupOnAStandardQueueIsNotHeldBehindAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedPipeline(t, newScript(numbered(30)))
		p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
			{If: func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == "id-0" }, Do: localcloud.Refuse, Code: "InternalError"},
		}}})
		p.run(p.sqsYAML("q", "message_group_id: one-tenant\nmax_retries: 2"))
		checkOnce(t, p.stored("q"), 0, 30, 0)
		if p.script.nackedHooks() != "0" {
			t.Errorf("nacked %q, want 0 alone", p.script.nackedHooks())
		}
	})
}

// A hook without a tenant has no empty attribute, which SQS would refuse.
func TestHookWithoutTenantSendsNoEmptyAttribute(t *testing.T) {
	for _, queue := range []string{"hooks", "hooks.fifo"} {
		p := newPipeline(t, newScript(numbered(2)))
		p.run(p.sqsYAML(queue, "attributes: { region: '${! @nothing.or(\"\") }' }"))
		checkDone(t, p, 2)
		for _, m := range p.sqs.Messages(queue) {
			if _, ok := m.Attributes["ankusa_tenant_id"]; ok || len(m.Attributes) != 5 {
				t.Errorf("attributes %v", m.Attributes)
			}
			if queue == "hooks.fifo" && m.Group != "/test" {
				t.Errorf("group %q, want /test", m.Group)
			}
		}
	}
}

// Entry ids are our own: a hook's id may occur twice in a batch, and be longer and freer than SQS allows
// an entry's.
func TestIDsAreNoEntryIDs(t *testing.T) {
	long := strings.Repeat("topic/", 15) // 90 characters
	hooks := numbered(4)
	hooks[0].meta["ankusa_id"], hooks[1].meta["ankusa_id"], hooks[2].meta["ankusa_id"] = "same", "same", long
	var ids []string
	p := newPipeline(t, newScript(hooks))
	p.sqs.Faults.Add(localcloud.Fault{If: func(c *localcloud.Call) bool {
		for _, e := range c.Entries {
			ids = append(ids, e.ID)
		}
		return false
	}})
	p.run(p.sqsYAML("hooks", ""))
	if got := p.stored("hooks"); got["same"] != 2 || got[long] != 1 || got["id-3"] != 1 {
		t.Errorf("stored: %v", got)
	}
	checkDone(t, p, 4)
	if slices.Sort(ids); strings.Join(ids, "") != "0123" {
		t.Errorf("entry ids %q, want 0 to 3", ids)
	}

	// A FIFO queue goes by the hook's id: the same id is the same event.
	p = newPipeline(t, newScript(hooks))
	p.run(p.sqsYAML("hooks.fifo", ""))
	if got := p.stored("hooks.fifo"); got["same"] != 1 || got[long] != 1 {
		t.Errorf("stored: %v", got)
	}
	checkDone(t, p, 4)
}

// A delay belongs to a standard queue's message, up to 900 seconds, and is never sent to a FIFO queue.
func TestDelayIsForStandardQueuesOnly(t *testing.T) {
	hooks := numbered(6)
	for i, delay := range []string{"0", "5", "900", "901", "-1", "soon"} {
		hooks[i].meta["delay"] = delay
	}
	p := newPipeline(t, newScript(hooks))
	p.run(p.sqsYAML("hooks", "delay_seconds: ${! @delay }"))
	checkOnce(t, p.stored("hooks"), 0, 6, 3, 4, 5)
	for n := 3; n < 6; n++ {
		if got := p.script.nackOf(n); !strings.HasPrefix(got, "permanent: sqs invalid_field: delay_seconds") || !strings.Contains(got, "900") {
			t.Errorf("delay %s: %q", hooks[n].meta["delay"], got)
		}
	}
	if s := p.sqs.Stats("hooks"); s.Entries != 3 || len(s.Refused) != 0 {
		t.Errorf("%d entries sent, refused %v; want the three good ones", s.Entries, s.Refused)
	}

	// A queue that only the message knows: no lint can say so, and the strict cloud refuses a delay there.
	for i := range hooks {
		hooks[i].meta["queue"] = []string{"a", "b.fifo"}[i%2]
	}
	p = newPipeline(t, newScript(hooks[:2]))
	p.run(p.sqsYAML("${! @queue }", "endpoint: "+p.server.sqs.URL()+"\ndelay_seconds: ${! @delay }"))
	checkDone(t, p, 2)
	if a, b := p.sqs.Stats("a"), p.sqs.Stats("b.fifo"); a.Messages != 1 || b.Messages != 1 || len(a.Refused)+len(b.Refused) != 0 {
		t.Errorf("standard %+v, FIFO %+v", a, b)
	}

	// Where the queue is written down, it is an error with a line before the first message.
	for _, delay := range []string{"0", "5"} {
		b := p.env.NewStreamBuilder()
		err := b.AddOutputYAML(p.sqsYAML("hooks.fifo", "delay_seconds: "+delay))
		if err == nil || !strings.Contains(err.Error(), "FIFO") {
			t.Errorf("delay %s on a FIFO queue: %v, want a lint error", delay, err)
		}
	}
	for _, delay := range []string{"901", "-1", "soon"} {
		b := p.env.NewStreamBuilder()
		if err := b.AddOutputYAML(p.sqsYAML("hooks", "delay_seconds: "+delay)); err == nil || !strings.Contains(err.Error(), "900") {
			t.Errorf("delay %s: %v, want a lint error", delay, err)
		}
	}
	for _, delay := range []string{"0", "900"} {
		b := p.env.NewStreamBuilder()
		must(t, b.AddOutputYAML(p.sqsYAML("hooks", "delay_seconds: "+delay)))
	}
}

// A group id that SQS would refuse fails alone and here. On a FIFO queue none at all is no group either.
func TestGroupIDsAreCheckedLocallyAndAlone(t *testing.T) {
	groups := []string{strings.Repeat("g", 128), strings.Repeat("g", 129), "with space", "ümlaut", "", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"}
	for _, queue := range []string{"hooks", "hooks.fifo"} {
		t.Run(queue, func(t *testing.T) {
			hooks := numbered(len(groups))
			for i, g := range groups {
				hooks[i].meta["group"] = g
			}
			p := newPipeline(t, newScript(hooks))
			p.run(p.sqsYAML(queue, "message_group_id: ${! @group.or(\"\") }"))
			bad := []int{1, 2, 3}
			if queue == "hooks.fifo" {
				bad = append(bad, 4)
			}
			checkOnce(t, p.stored(queue), 0, len(groups), bad...)
			for _, n := range bad {
				if got := p.script.nackOf(n); !strings.HasPrefix(got, "permanent: sqs invalid_field: message_group_id") {
					t.Errorf("group %q: %q", groups[n], got)
				}
			}
			for _, m := range p.sqs.Messages(queue) {
				var i int
				fmt.Sscanf(m.Attributes["ankusa_id"], "id-%d", &i)
				if m.Group != groups[i] {
					t.Errorf("%s: group %q, want %q", m.Attributes["ankusa_id"], m.Group, groups[i])
				}
			}
			if s := p.sqs.Stats(queue); s.Entries != len(groups)-len(bad) || len(s.Refused) != 0 {
				t.Errorf("%d entries sent, refused %v", s.Entries, s.Refused)
			}
		})
	}
}

// The default group of a tenant and a source that are both as long as they may be is one character too
// long for SQS.
func TestDefaultGroupThatIsTooLongFailsAloneAndLocally(t *testing.T) {
	hooks := numbered(3)
	for i, n := range []int{63, 64} {
		hooks[i].meta["ankusa_tenant_id"] = strings.Repeat("t", n)
		hooks[i].meta["ankusa_source_id"] = strings.Repeat("s", 64)
	}
	p := newPipeline(t, newScript(hooks))
	p.run(p.sqsYAML("hooks.fifo", ""))
	checkOnce(t, p.stored("hooks.fifo"), 0, 3, 1)
	if got := p.script.nackOf(1); !strings.HasPrefix(got, "permanent: sqs invalid_field: message_group_id has 129 characters") {
		t.Errorf("%q", got)
	}
}

// An interpolation that fails concerns its message. The engine's own words quote the message, so they
// stay out of the error.
func TestFailedInterpolationFailsItsMessageAlone(t *testing.T) {
	hooks := numbered(5)
	for i := range hooks {
		hooks[i].body = fmt.Sprintf(`{"n":%d,"key":"k%d"}`, i, i)
	}
	hooks[2].body = "no JSON but " + marker
	for _, field := range []string{
		"hook: { dedupe_key: '${! json(\"key\") }' }",
		"message_group_id: '${! json(\"key\") }'",
		"delay_seconds: '${! json(\"n\") }'",
		"attributes: { key: '${! json(\"key\") }' }",
	} {
		t.Run(field, func(t *testing.T) {
			p := newPipeline(t, newScript(hooks))
			p.run(p.sqsYAML("hooks", field))
			checkOnce(t, p.stored("hooks"), 0, 5, 2)
			got := p.script.nackOf(2)
			if p.script.nackedHooks() != "2" || !strings.HasPrefix(got, "permanent: message invalid_field: ") || !strings.Contains(got, "interpolation failed") {
				t.Errorf("nacked %q with %q", p.script.nackedHooks(), got)
			}
			if all := got + p.logs.String(); strings.Contains(all, marker) {
				t.Errorf("the body is quoted: %s", all)
			}
		})
	}
}

// Keys come from files and environment variables, with blanks and line ends around, and AWS makes
// secrets that hold / and +. A strict cloud checks the signature.
func TestKeysWithBlanksAroundAndSlashesInsideSign(t *testing.T) {
	p := newPipeline(t, newScript(numbered(3)))
	p.useSQS(localsqs.Options{AccessKeyID: "AKIASITUATIONS", SecretAccessKey: "a/b+c/d+e=f"})
	p.run(fmt.Sprintf("ankusa_sqs:\n  queue_url: %s/%s/hooks\n  region: us-east-1\n  credentials: { id: \" AKIASITUATIONS\\n\", secret: \"a/b+c/d+e=f\\r\\n\" }\n",
		p.server.sqs.URL(), localsqs.DefaultAccount))
	checkOnce(t, p.stored("hooks"), 0, 3)
	checkDone(t, p, 3)
}
