package message

import (
	"slices"
	"testing"
)

func TestIdentity(t *testing.T) {
	tests := []struct {
		name                    string
		hook                    Hook
		key, group, deduplicate string
		attributes              []Attribute
	}{
		{
			"everything", Hook{ID: "01a0", SourceID: "stripe", TenantID: "acme", DedupeKey: "evt:1", ReplayID: "rp"},
			"acme:stripe:evt:1", "acme/stripe", "01a0:replay:rp",
			[]Attribute{
				{"ankusa_id", "01a0"}, {"ankusa_source_id", "stripe"}, {"ankusa_tenant_id", "acme"}, {"ankusa_message_version", "1"},
				{"ankusa_idempotency_key", "acme:stripe:evt:1"}, {"content_type", "application/json"},
				{"ankusa_dedupe_key", "evt:1"}, {"ankusa_replay_id", "rp"},
			},
		},
		{
			"no tenant", Hook{ID: "01a0", SourceID: "stripe", DedupeKey: "evt"},
			"default:stripe:evt", "/stripe", "01a0",
			[]Attribute{
				{"ankusa_id", "01a0"}, {"ankusa_source_id", "stripe"}, {"ankusa_message_version", "1"},
				{"ankusa_idempotency_key", "default:stripe:evt"}, {"content_type", "application/json"}, {"ankusa_dedupe_key", "evt"},
			},
		},
		{
			"no dedupe key", Hook{ID: "01a0", SourceID: "s", TenantID: "acme", ContentType: "text/xml"},
			"01a0", "acme/s", "01a0",
			[]Attribute{
				{"ankusa_id", "01a0"}, {"ankusa_source_id", "s"}, {"ankusa_tenant_id", "acme"}, {"ankusa_message_version", "1"},
				{"ankusa_idempotency_key", "01a0"}, {"content_type", "application/json"},
			},
		},
		{
			"a replay keeps the original's key", Hook{ID: "01a0", SourceID: "s", ReplayID: "rp"},
			"01a0", "/s", "01a0:replay:rp",
			[]Attribute{
				{"ankusa_id", "01a0"}, {"ankusa_source_id", "s"}, {"ankusa_message_version", "1"},
				{"ankusa_idempotency_key", "01a0"}, {"content_type", "application/json"}, {"ankusa_replay_id", "rp"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Decode(tt.hook.AppendTo(nil))
			if err != nil {
				t.Fatal(err)
			}
			first := Attribute{"before", "it"}
			for who, m := range map[string]interface {
				IdempotencyKey() string
				Group() string
				DeduplicationID() string
				AppendAttributes([]Attribute) []Attribute
			}{"hook": &tt.hook, "decoded": d} {
				eq(t, who+"'s key", m.IdempotencyKey(), tt.key)
				eq(t, who+"'s group", m.Group(), tt.group)
				eq(t, who+"'s deduplication id", m.DeduplicationID(), tt.deduplicate)
				if got := m.AppendAttributes([]Attribute{first}); !slices.Equal(got, append([]Attribute{first}, tt.attributes...)) {
					t.Errorf("%s's attributes are %q", who, got)
				}
			}
		})
	}
}

func TestDecodedKeyIsTheShippedOne(t *testing.T) {
	for _, tt := range []struct{ name, members, want string }{
		{"shipped", `"idempotency_key":"k","dedupe_key":"d"`, "k"},
		{"shipped, without a dedupe key", `"idempotency_key":"k"`, "k"},
		{"empty", `"idempotency_key":"","dedupe_key":"d"`, "default:s:d"},
		{"null", `"idempotency_key":null,"dedupe_key":"d","tenant_id":"acme"`, "acme:s:d"},
		{"absent", `"dedupe_key":"d","tenant_id":""`, "default:s:d"},
		{"absent, without a dedupe key", `"dedupe_key":""`, "i"},
	} {
		d, err := Decode([]byte(`{"v":1,"id":"i","source_id":"s","received_at":0,"size":0,"body_base64":"",` + tt.members + `}`))
		if err != nil {
			t.Fatal(err)
		}
		eq(t, tt.name, d.IdempotencyKey(), tt.want)
	}
}

// A message of another producer may name no source; SQS refuses an empty attribute value.
func TestEmptySourceIsNoAttribute(t *testing.T) {
	d, err := Decode([]byte(`{"v":1,"id":"i","source_id":"","received_at":0,"size":0,"body_base64":""}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Attribute{{"ankusa_id", "i"}, {"ankusa_message_version", "1"}, {"ankusa_idempotency_key", "i"}, {"content_type", "application/json"}}
	if got := d.AppendAttributes(nil); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
