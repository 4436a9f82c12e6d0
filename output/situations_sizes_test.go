package output_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// Nine messages of 1,000,000 bytes are a legal batch of 9.0 MB, and 12.0 MB once base64 has them: the
// front end would refuse the request, and with it nine good messages.
func TestPubSubRequestsStayBelowTheBodyLimit(t *testing.T) {
	var bodies []string
	for i := range 9 {
		bodies = append(bodies, encoded(t, fmt.Sprintf("id-%d", i), 1_000_000, ""))
	}
	p := newPipeline(t, newScript(encodedHooks(bodies...)))
	p.run(p.pubsubYAML("hooks", "hook: { format: ankusa }\nbatch: { max_bytes: 10000000 }"))
	checkOnce(t, p.published("hooks"), 0, 9)
	checkDone(t, p, 9)
	s := p.pubsub.Stats("hooks")
	if s.MaxBodyBytes > localpubsub.MaxBodyBytes || len(s.Refused) != 0 || len(p.pubsub.Refused()) != 0 {
		t.Errorf("a body of %d bytes, refused: %v %v; want at most %d and none", s.MaxBodyBytes, s.Refused, p.pubsub.Refused(), localpubsub.MaxBodyBytes)
	}
	if s.Requests != 2 {
		t.Errorf("%d requests, want 2", s.Requests)
	}
}

// A control character in an attribute is one byte to Pub/Sub's own limit and six to the front end's.
func TestEscapesCountTowardsTheBodyLimit(t *testing.T) {
	const n, attributes = 40, 60
	hooks := numbered(n)
	var fields strings.Builder
	fields.WriteString("batch: { max_bytes: 10000000 }\nattributes:\n")
	for i := range hooks {
		hooks[i].meta["control"] = strings.Repeat("\x01", 1000)
	}
	for i := range attributes {
		fmt.Fprintf(&fields, "  a%02d: ${! @control }\n", i)
	}
	p := newPipeline(t, newScript(hooks))
	p.run(p.pubsubYAML("hooks", fields.String()))
	checkOnce(t, p.published("hooks"), 0, n)
	checkDone(t, p, n)
	s := p.pubsub.Stats("hooks")
	if s.Bytes > 10_000_000 || s.Requests < 2 {
		t.Fatalf("%d bytes in %d requests: the escapes decided nothing here", s.Bytes, s.Requests)
	}
	if s.MaxBodyBytes > localpubsub.MaxBodyBytes || len(s.Refused)+len(p.pubsub.Refused()) != 0 {
		t.Errorf("a body of %d bytes, refused: %v %v", s.MaxBodyBytes, s.Refused, p.pubsub.Refused())
	}
	if s.MaxBodyBytes < localpubsub.MaxBodyBytes/2 {
		t.Errorf("the largest body has %d bytes: requests could be twice as large", s.MaxBodyBytes)
	}
}

// A message of 8,000,000 bytes is within Pub/Sub's limit and can't go by REST all the same. Its body
// belongs in a store; without one it is refused before any request, and its neighbours go.
func TestBodyTooLargeForRESTIsRefusedOrStored(t *testing.T) {
	body := strings.Repeat("x", 8_000_000)
	for _, c := range []struct{ name, body, fields, want string }{
		{"no store", body, "", "permanent: claim claim_check_unconfigured"},
		{"inline by configuration", body, "inline_max_bytes: 10000000", "permanent: pubsub message_too_large"},
		{"encoded already", encoded(t, "id-1", 8_000_000, ""), "hook: { format: ankusa }", "permanent: pubsub message_too_large"},
		{"store", body, "claim_check: { store: 'dir://%s' }", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			hooks := numbered(3)
			hooks[1].body = c.body
			if strings.Contains(c.fields, "ankusa") {
				hooks[0].body, hooks[2].body = encoded(t, "id-0", 200, ""), encoded(t, "id-2", 200, "")
			}
			if strings.Contains(c.fields, "%s") {
				c.fields = fmt.Sprintf(c.fields, t.TempDir())
			}
			p := newPipeline(t, newScript(hooks))
			p.run(p.pubsubYAML("hooks", c.fields))
			if c.want == "" {
				checkOnce(t, p.published("hooks"), 0, 3)
				checkDone(t, p, 3)
				if m := p.messages("hooks")["id-1"]; !strings.Contains(m, `"size":8000000`) || !strings.Contains(m, `"claim":"urn:ankusa:claim:v1:`) {
					t.Errorf("the message is no claim ticket: %.200s", m)
				}
				return
			}
			checkOnce(t, p.published("hooks"), 0, 3, 1)
			if got := p.script.nackOf(1); !strings.HasPrefix(got, c.want) || p.script.nackedHooks() != "1" {
				t.Errorf("nacked %q, the large one with %q; want it alone with %q", p.script.nackedHooks(), got, c.want)
			}
			if s := p.pubsub.Stats("hooks"); s.Requests != 1 || s.Entries != 2 {
				t.Errorf("%d requests of %d messages in all, want 1 of 2: none for the large one", s.Requests, s.Entries)
			}
		})
	}

	// Alone it must cost no request at all.
	t.Run("alone", func(t *testing.T) {
		hooks := numbered(1)
		hooks[0].body = body
		p := newPipeline(t, newScript(hooks))
		p.run(p.pubsubYAML("hooks", ""))
		if n := p.pubsub.Requests(""); n != 0 || !strings.HasPrefix(p.script.nackOf(0), "permanent: ") {
			t.Errorf("%d requests, %q; want none and permanent", n, p.script.nackOf(0))
		}
	})
}

// Two bodies that fill a request exactly have attributes on top, which SQS counts too.
func TestAttributesCountTowardsARequest(t *testing.T) {
	bodies := []string{encoded(t, "id-0", 524_288, ""), encoded(t, "id-1", 524_288, "")}
	p := newPipeline(t, newScript(encodedHooks(bodies...)))
	p.run(p.sqsYAML("hooks", "hook: { format: ankusa }\nbatch: { max_bytes: 1048576 }"))
	checkOnce(t, p.stored("hooks"), 0, 2)
	checkDone(t, p, 2)
	if s := p.sqs.Stats("hooks"); s.Requests != 2 || len(s.Refused) != 0 {
		t.Errorf("%d requests, refused %v; want 2 and none", s.Requests, s.Refused)
	}
}

// A queue, or another implementation, may take less in one request than we were told to send.
func TestQueueWithASmallerLimitSplitsRequests(t *testing.T) {
	bodies := make([]string, 10)
	for i := range bodies {
		bodies[i] = encoded(t, fmt.Sprintf("id-%d", i), 30_000, "")
	}
	const fields = "hook: { format: ankusa }\nbatch: { max_bytes: 1048576 }"

	t.Run("ten together are too long", func(t *testing.T) {
		p := newPipeline(t, newScript(encodedHooks(bodies...)))
		p.useSQS(localsqs.Options{MaxBatchBytes: 262_144})
		p.run(p.sqsYAML("hooks", fields))
		checkOnce(t, p.stored("hooks"), 0, 10)
		checkDone(t, p, 10)
		s := p.sqs.Stats("hooks")
		if s.Refused["AWS.SimpleQueueService.BatchRequestTooLong"] != 1 || s.Requests != 3 {
			t.Errorf("%d requests, refused %v; want one refused whole and two halves", s.Requests, s.Refused)
		}
	})
	t.Run("each alone is too long", func(t *testing.T) {
		bodies := append([]string{encoded(t, "id-small", 500, "")}, bodies[:3]...)
		hooks := encodedHooks(bodies...)
		p := newPipeline(t, newScript(hooks))
		p.useSQS(localsqs.Options{MaxBatchBytes: 20_000})
		p.run(p.sqsYAML("hooks", fields))
		if got := p.stored("hooks"); len(got) != 1 || got["id-small"] != 1 {
			t.Errorf("stored: %v, want the small one", got)
		}
		if p.script.nackedHooks() != "1 2 3" || p.script.nackedTimes() != 3 {
			t.Errorf("nacked %q", p.script.nackedHooks())
		}
		for n := 1; n <= 3; n++ {
			if got := p.script.nackOf(n); !strings.HasPrefix(got, "permanent: sqs 400 BatchRequestTooLong") || !strings.Contains(got, "max_message_bytes") {
				t.Errorf("hook %d: %q, want permanent and the remedy", n, got)
			}
		}
	})
}

// The limit of one message is met exactly, attributes and all.
func TestOneMessageAtTheLimit(t *testing.T) {
	// What the attributes add is the service's to say.
	p := newPipeline(t, newScript(encodedHooks(encoded(t, "id-0", 1000, ""))))
	p.run(p.sqsYAML("hooks", "hook: { format: ankusa }"))
	envelope := p.sqs.Messages("hooks")[0].Size - 1000

	p = newPipeline(t, newScript(encodedHooks(
		encoded(t, "id-0", 1_048_576-envelope, ""),
		encoded(t, "id-1", 1_048_577-envelope, ""),
	)))
	p.run(p.sqsYAML("hooks", "hook: { format: ankusa }"))
	if got := p.sqs.Messages("hooks"); len(got) != 1 || got[0].Size != 1_048_576 || got[0].Attributes["ankusa_id"] != "id-0" {
		t.Errorf("%d stored, want the one of 1,048,576 bytes", len(got))
	}
	if got := p.script.nackOf(1); p.script.nackedHooks() != "1" || !strings.HasPrefix(got, "permanent: sqs message_too_large") ||
		!strings.Contains(got, "1048577") || !strings.Contains(got, "1048576") {
		t.Errorf("nacked %q, the larger with %q; want size and limit", p.script.nackedHooks(), got)
	}
	if s := p.sqs.Stats("hooks"); s.Requests != 1 || len(s.Refused) != 0 {
		t.Errorf("%d requests, refused %v; want 1 and none", s.Requests, s.Refused)
	}
}

// Of text in two-byte letters the characters are half of what SQS counts.
func TestBytesDecideAndNotCharacters(t *testing.T) {
	hooks := numbered(3)
	for i, letters := range []int{1000, 520_000, 525_000} {
		hooks[i].meta["X-Note"] = strings.Repeat("é", letters)
	}
	p := newPipeline(t, newScript(hooks))
	p.run(p.sqsYAML("hooks", "batch: { max_bytes: 1048576 }"))
	checkOnce(t, p.stored("hooks"), 0, 3, 2)
	if got := p.script.nackOf(2); p.script.nackedHooks() != "2" || !strings.HasPrefix(got, "permanent: sqs message_too_large") {
		t.Errorf("nacked %q, 525,000 letters of two bytes with %q", p.script.nackedHooks(), got)
	}
	for id, body := range p.messages("hooks") {
		if h := decode(t, body).Headers["x-note"]; strings.Trim(h, "é") != "" || h == "" {
			t.Errorf("%s: the text has changed", id)
		}
	}
	if s := p.sqs.Stats("hooks"); len(s.Refused) != 0 {
		t.Errorf("refused: %v, want none", s.Refused)
	}
}
