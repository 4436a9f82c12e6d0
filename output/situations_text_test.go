package output_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// badText is no UTF-8: the second byte begins a character that the third doesn't go on with.
const badText = "\x61\xc5\x7a"

// replaced is what a careless encoder writes for bytes that are no UTF-8.
const replaced = "\uFFFD"

func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// A body is bytes and nothing else. It travels as base64, so nothing may look at it as text.
func TestBodiesOfAnyBytesArriveUnchanged(t *testing.T) {
	bodies := []string{"\x7b\x22\x61\x22\x3a\x22\xe9\x22\x7d", allBytes(), badText, "\ufffe\uffff\x00", "", "\xef\xbb\xbf{}"}
	bothClouds(t, func(t *testing.T, sqs bool) {
		hooks := numbered(len(bodies))
		for i := range hooks {
			hooks[i].body = bodies[i]
		}
		p := newPipeline(t, newScript(hooks))
		p.run(p.yaml(sqs, ""))
		checkOnce(t, p.arrived(sqs), 0, len(bodies))
		checkDone(t, p, len(bodies))
		for id, m := range p.messages("hooks") {
			var i int
			fmt.Sscanf(id, "id-%d", &i)
			if d := decode(t, m); string(d.Body) != bodies[i] || d.Size != len(bodies[i]) {
				t.Errorf("%s: body %q, size %d, want %q", id, d.Body, d.Size, bodies[i])
			}
			if strings.Contains(m, replaced) || !utf8.ValidString(m) {
				t.Errorf("%s: the message holds U+FFFD or is no UTF-8", id)
			}
		}
	})
}

// Text that is not UTF-8 can't be put into JSON without being changed, so the hook is refused, the
// field is named, and the hooks around it go.
func TestTextThatIsNotUTF8IsRefusedByFieldAndAlone(t *testing.T) {
	fields := []struct{ key, name string }{
		{"ankusa_id", "id"}, {"ankusa_source_id", "source_id"}, {"ankusa_tenant_id", "tenant_id"}, {"ankusa_dedupe_key", "dedupe_key"},
		{"ankusa_replay_id", "replay_id"}, {"ankusa_content_type", "content_type"}, {"Content-Type", "content_type"}, {"X-Note", "x-note"},
		{"extra", "attribute"}, // an attribute of the configuration
	}
	bothClouds(t, func(t *testing.T, sqs bool) {
		n := 2 * len(fields)
		hooks := numbered(n)
		var bad []int
		for i, f := range fields {
			hooks[2*i].meta[f.key] = badText
			bad = append(bad, 2*i)
		}
		p := newPipeline(t, newScript(hooks))
		p.run(p.yaml(sqs, "attributes: { extra: '${! @extra.or(\"none\") }' }"))
		checkOnce(t, p.arrived(sqs), 0, n, bad...)
		for i, f := range fields {
			got := p.script.nackOf(2 * i)
			if !strings.HasPrefix(got, "permanent: ") || !strings.Contains(got, f.name) {
				t.Errorf("%s: nacked with %q, want permanent and the field %s", f.key, got, f.name)
			}
			if strings.Contains(got, badText) || strings.Contains(got, replaced) {
				t.Errorf("%s: the error quotes the value: %q", f.key, got)
			}
		}
		if p.script.ackedCount() != len(fields) || p.script.nackedTimes() != len(fields) {
			t.Errorf("%d acked, %d nacked, want %d of each", p.script.ackedCount(), p.script.nackedTimes(), len(fields))
		}
		for id, m := range p.messages("hooks") {
			if strings.Contains(m, replaced) {
				t.Errorf("%s holds U+FFFD", id)
			}
		}
	})
}

// The engine's JSON reader replaces such bytes before we see the field. A U+FFFD that the provider
// sent itself is a character like any other.
func TestTextFromABodyThatIsNotUTF8IsRefused(t *testing.T) {
	for name, fields := range map[string]string{
		"an expression": "hook: { dedupe_key: '${! json(\"id\") }' }",
		"metadata":      "", // as a mapping before us leaves it
	} {
		t.Run(name, func(t *testing.T) {
			hooks := numbered(3)
			hooks[0].body = "{\"id\":\"evt" + badText + "\"}"
			hooks[1].body = `{"id":"evt` + replaced + `"}`
			hooks[2].body = `{"id":"evt"}`
			hooks[0].meta["ankusa_dedupe_key"] = "evt" + replaced
			hooks[1].meta["ankusa_dedupe_key"] = "evt" + replaced
			p := newPipeline(t, newScript(hooks))
			p.run(p.sqsYAML("hooks", fields))
			checkOnce(t, p.stored("hooks"), 0, 3, 0)
			if got := p.script.nackOf(0); p.script.nackedHooks() != "0" || !strings.HasPrefix(got, "permanent: message invalid_field: hook.dedupe_key") {
				t.Errorf("nacked %q with %q, want the first, permanent, dedupe_key", p.script.nackedHooks(), got)
			}
			if d := decode(t, p.messages("hooks")["id-1"]); *d.DedupeKey != "evt"+replaced {
				t.Errorf("dedupe key %q", *d.DedupeKey)
			}
		})
	}
}

// An encoded message goes byte for byte or not at all.
func TestEncodedMessageWithBadBytesIsRefused(t *testing.T) {
	good := encoded(t, "id-0", 300, "")
	hooks := encodedHooks(
		good,
		strings.Replace(good, `"pad":"`, `"pad":"`+badText, 1),
		good[:len(good)-1],
		`["not","an","object"]`,
		encoded(t, "id-4", 300, `,"note":"`+replaced+` \ufffd"`),
	)
	bothClouds(t, func(t *testing.T, sqs bool) {
		p := newPipeline(t, newScript(hooks))
		p.run(p.yaml(sqs, "hook: { format: ankusa }"))
		got := p.messages("hooks")
		if len(got) != 2 || got["id-0"] != hooks[0].body || got["id-4"] != hooks[4].body {
			t.Errorf("%d stored: %v; want the first and the last, byte for byte", len(got), got)
		}
		for n, want := range map[int]string{1: "invalid_json", 2: "invalid_json", 3: "not_an_object"} {
			if err := p.script.nackOf(n); !strings.HasPrefix(err, "permanent: message "+want) {
				t.Errorf("hook %d: %q, want %s", n, err, want)
			}
		}
		if p.script.nackedHooks() != "1 2 3" {
			t.Errorf("nacked %q", p.script.nackedHooks())
		}
	})
}

// A wrong MD5 for a sound message means that nobody knows what was stored: it is sent again, and not
// for ever.
func TestWrongMD5IsResentABoundedNumberOfTimes(t *testing.T) {
	for _, c := range []struct{ queue, fields string }{
		{"hooks", ""},
		{"hooks", "max_retries: 3"},
		{"hooks.fifo", "max_retries: 3"},
	} {
		t.Run(c.queue+" "+c.fields, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipedPipeline(t, newScript(numbered(3)))
				p.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
					{If: func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == "id-1" }, Do: localcloud.WrongMD5},
				}}})
				p.run(p.sqsYAML(c.queue, c.fields))
				sends := p.sqs.Requests("SendMessageBatch")
				if got := p.script.nackOf(1); !strings.HasPrefix(got, "transient: sqs 200 md5_mismatch") {
					t.Errorf("nacked with %q", got)
				}
				if c.fields != "" && sends != 4 || sends < 3 || sends > 60 {
					t.Errorf("sent %d times", sends)
				}
				if c.queue == "hooks.fifo" {
					// Behind the unconfirmed one of its group, by default, the third hook waits or fails with it.
					if s := p.sqs.Stats(c.queue); s.Messages != 3 && s.Messages != 2 {
						t.Errorf("%d stored", s.Messages)
					}
					if s := p.stored(c.queue); s["id-1"] != 1 {
						t.Errorf("the resends were stored: %v", s)
					}
				} else if p.script.ackedHooks() != "0 2" {
					t.Errorf("acked %q, want the neighbours", p.script.ackedHooks())
				}
			})
		})
	}
}

// Characters that SQS takes or not: inside the message all of them travel, escaped where needed.
var (
	noSQS  = []rune{0x00, 0x0B, 0x1F, 0xFFFE, 0xFFFF}
	allSQS = []rune{'\t', '\n', '\r', 0x7F, 0x85, 0xFFFD, 0x1F600, 0x1FFFF, 0x10FFFF}
)

func TestCharactersTravelInsideTheMessage(t *testing.T) {
	runes := append(append([]rune(nil), noSQS...), allSQS...)
	bothClouds(t, func(t *testing.T, sqs bool) {
		hooks := numbered(len(runes))
		for i, r := range runes {
			hooks[i].meta["X-Note"] = "a" + string(r) + "b"
			hooks[i].meta["Content-Type"] = "c" + string(r) + "d"
		}
		p := newPipeline(t, newScript(hooks))
		p.run(p.yaml(sqs, ""))
		checkOnce(t, p.arrived(sqs), 0, len(runes))
		checkDone(t, p, len(runes))
		if len(p.sqs.Refused()) != 0 {
			t.Errorf("refused: %v", p.sqs.Refused())
		}
		for i, r := range runes {
			d := decode(t, p.messages("hooks")[fmt.Sprintf("id-%d", i)])
			if d.Headers["x-note"] != "a"+string(r)+"b" || d.ContentType == nil || *d.ContentType != "c"+string(r)+"d" {
				t.Errorf("%U: header %q, content type %v", r, d.Headers["x-note"], d.ContentType)
			}
		}
	})
}

// As an attribute's value, which knows no escape, five of them can't go to SQS. That is known before
// any request.
func TestCharactersThatNoAttributeHoldsArePermanentWithTheirPlace(t *testing.T) {
	runes := append(append([]rune(nil), noSQS...), allSQS...)
	hooks := numbered(len(runes))
	for i, r := range runes {
		hooks[i].meta["ankusa_dedupe_key"] = "evt" + string(r)
	}
	p := newPipeline(t, newScript(hooks))
	p.run(p.sqsYAML("hooks", ""))
	checkOnce(t, p.stored("hooks"), 0, len(runes), 0, 1, 2, 3, 4)
	for i, r := range runes {
		got := p.script.nackOf(i)
		if i >= len(noSQS) {
			if got != "" || *decode(t, p.messages("hooks")[fmt.Sprintf("id-%d", i)]).DedupeKey != "evt"+string(r) {
				t.Errorf("%U: %q, or it has changed", r, got)
			}
			continue
		}
		// The key stands in the idempotency key too, and whichever comes first is named.
		if !strings.HasPrefix(got, "permanent: sqs invalid_field") || !strings.Contains(got, fmt.Sprintf("%U at byte", r)) {
			t.Errorf("%U: %q, want permanent, code point and position", r, got)
		}
	}
	if s := p.sqs.Stats("hooks"); s.Entries != len(allSQS) || len(s.Refused) != 0 {
		t.Errorf("%d entries sent, refused %v; want %d and none", s.Entries, s.Refused, len(allSQS))
	}

	// Pub/Sub takes any UTF-8.
	p = newPipeline(t, newScript(hooks))
	p.run(p.pubsubYAML("hooks", ""))
	checkOnce(t, p.published("hooks"), 0, len(runes))
	for _, m := range p.pubsub.Published("hooks") {
		if d := decode(t, string(m.Data)); m.Attributes["ankusa_dedupe_key"] != *d.DedupeKey {
			t.Errorf("%s: attribute %q, message %q", d.ID, m.Attributes["ankusa_dedupe_key"], *d.DedupeKey)
		}
	}
}

// It is somebody else's encoding and passed on byte for byte, so what SQS can't hold stays here.
func TestEncodedMessageWithARawNoncharacterIsRefusedBeforeAnyRequest(t *testing.T) {
	raw, escaped := encoded(t, "id-0", 300, ",\"note\":\"\ufffe\""), encoded(t, "id-1", 300, `,"note":"\ufffe\u0000"`)
	p := newPipeline(t, newScript(encodedHooks(raw)))
	p.run(p.sqsYAML("hooks", "hook: { format: ankusa }"))
	if got := p.script.nackOf(0); !strings.HasPrefix(got, "permanent: sqs invalid_field") || !strings.Contains(got, "U+FFFE at byte "+fmt.Sprint(strings.Index(raw, "\ufffe"))) {
		t.Errorf("nacked with %q, want permanent, code point and position", got)
	}
	if n := p.sqs.Requests(""); n != 0 {
		t.Errorf("%d requests, want none", n)
	}

	p = newPipeline(t, newScript(encodedHooks(raw, escaped)))
	p.run(p.sqsYAML("hooks", "hook: { format: ankusa }"))
	if got := p.messages("hooks"); len(got) != 1 || got["id-1"] != escaped {
		t.Errorf("stored: %v, want the escaped one byte for byte", got)
	}

	p = newPipeline(t, newScript(encodedHooks(raw, escaped)))
	p.run(p.pubsubYAML("hooks", "hook: { format: ankusa }"))
	if got := p.messages("hooks"); got["id-0"] != raw || got["id-1"] != escaped {
		t.Errorf("stored: %v, want both byte for byte: Pub/Sub takes any data", got)
	}
}

// A server with a stricter idea of characters than ours refuses a request whole. Only the message that
// it can't take is lost.
func TestServerThatRefusesCharactersLosesOnlyTheCulprit(t *testing.T) {
	for _, queue := range []string{"hooks", "hooks.fifo"} {
		t.Run(queue, func(t *testing.T) {
			p := newPipeline(t, newScript(numbered(10)))
			p.sqs.Faults.Add(localcloud.Fault{
				Action: "SendMessageBatch",
				If: func(c *localcloud.Call) bool {
					for _, e := range c.Entries {
						if bytes.Contains(e.Body, []byte(`"id":"id-6"`)) {
							return true
						}
					}
					return false
				},
				Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "InvalidMessageContents"}},
			})
			p.run(p.sqsYAML(queue, ""))
			checkOnce(t, p.stored(queue), 0, 10, 6)
			if got := p.script.nackOf(6); p.script.nackedHooks() != "6" || !strings.HasPrefix(got, "permanent: sqs 400 InvalidMessageContents") {
				t.Errorf("nacked %q, the culprit with %q", p.script.nackedHooks(), got)
			}
			if queue == "hooks.fifo" {
				checkOrder(t, p.sqs.Messages(queue), 9, true)
			}
		})
	}
}
