package message

import (
	"errors"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

const digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

const refText = "urn:ankusa:claim:v1:acme:01M39VMD8RA3C5HR4RBV67Y002"

// secret stands in for what no error may hold. It is not UTF-8, as in a text of another encoding.
const secret = "s3cret-\xc5z"

func someHook() *Hook {
	return &Hook{ID: "01a0", SourceID: "stripe", TenantID: "acme", ReceivedAt: 1737500000000, Body: []byte("hello")}
}

func mustRef(tb testing.TB, s string) claim.Ref {
	tb.Helper()
	ref, err := claim.ParseRef(s)
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}

// checkRefusal checks an error of this package; field is "" where the code says it all.
func checkRefusal(t *testing.T, err error, code, field string) {
	t.Helper()
	e, ok := errors.AsType[*classify.Error](err)
	if !ok {
		t.Fatalf("got %v, want a classified error", err)
	}
	if e.Class != classify.Permanent || e.Service != "message" || e.Code != code {
		t.Errorf("got %v, want permanent: message %s", e, code)
	}
	if field != "" && !strings.HasPrefix(e.Message, field+" ") {
		t.Errorf("%q does not begin with the field %q", e.Message, field)
	}
	if strings.Contains(e.Error(), "s3cret") {
		t.Errorf("%q holds a value", e)
	}
}

func TestValidate(t *testing.T) {
	ref := mustRef(t, refText)
	long := strings.Repeat("a", 64)
	tests := []struct {
		name        string
		change      func(*Hook)
		code, field string // "" when the hook is sound
	}{
		{"as it is", func(h *Hook) {}, "", ""},
		{"only what is required", func(h *Hook) { *h = Hook{ID: "i", SourceID: "s"} }, "", ""},
		{"any id that is text", func(h *Hook) { h.ID = "a b/\u0000\uffff" + strings.Repeat("x", 5000) }, "", ""},
		{"no id", func(h *Hook) { h.ID = "" }, CodeInvalidField, "id"},
		{"id not UTF-8", func(h *Hook) { h.ID = secret }, CodeInvalidField, "id"},
		{"half a pair as three bytes", func(h *Hook) { h.ID = "\xed\xa0\x80" }, CodeInvalidField, "id"},
		{"no source", func(h *Hook) { h.SourceID = "" }, CodeInvalidField, "source_id"},
		{"source of 64", func(h *Hook) { h.SourceID = long }, "", ""},
		{"source of 65", func(h *Hook) { h.SourceID = long + "a" }, CodeInvalidField, "source_id"},
		{"source with every kind of character", func(h *Hook) { h.SourceID = "AZaz09_-" }, "", ""},
		{"source with a slash", func(h *Hook) { h.SourceID = "a/s3cret" }, CodeInvalidField, "source_id"},
		{"source with a letter outside ASCII", func(h *Hook) { h.SourceID = "é" }, CodeInvalidField, "source_id"},
		{"source not UTF-8", func(h *Hook) { h.SourceID = secret }, CodeInvalidField, "source_id"},
		{"source with a line end", func(h *Hook) { h.SourceID = "a\n" }, CodeInvalidField, "source_id"},
		{"no tenant", func(h *Hook) { h.TenantID = "" }, "", ""},
		{"tenant of 64", func(h *Hook) { h.TenantID = long }, "", ""},
		{"tenant of 65", func(h *Hook) { h.TenantID = long + "a" }, CodeInvalidField, "tenant_id"},
		{"tenant with a dot", func(h *Hook) { h.TenantID = ".." }, CodeInvalidField, "tenant_id"},
		{"first millisecond", func(h *Hook) { h.ReceivedAt = 0 }, "", ""},
		{"before it", func(h *Hook) { h.ReceivedAt = -1 }, CodeInvalidField, "received_at"},
		{"last millisecond", func(h *Hook) { h.ReceivedAt = 1<<48 - 1 }, "", ""},
		{"after it", func(h *Hook) { h.ReceivedAt = 1 << 48 }, CodeInvalidField, "received_at"},
		{"content type not UTF-8", func(h *Hook) { h.ContentType = secret }, CodeInvalidField, "content_type"},
		{"dedupe key not UTF-8", func(h *Hook) { h.DedupeKey = secret }, CodeInvalidField, "dedupe_key"},
		{"dedupe key with U+FFFD of its own", func(h *Hook) { h.DedupeKey = "\ufffd" }, "", ""},
		{"replay id not UTF-8", func(h *Hook) { h.ReplayID = secret }, CodeInvalidField, "replay_id"},
		{"header value not UTF-8", func(h *Hook) { h.Headers = map[string]string{"x-a": "1", "x-b": secret} }, CodeInvalidField, "headers"},
		{"header name not UTF-8", func(h *Hook) { h.Headers = map[string]string{"x-\xc5z": "s3cret"} }, CodeInvalidField, "headers"},
		{"empty header name not UTF-8 elsewhere", func(h *Hook) { h.Headers = map[string]string{"": "\xff"} }, CodeInvalidField, "headers"},
		{"header name not lowercase", func(h *Hook) { h.Headers = map[string]string{"X-A": "s3cret"} }, CodeInvalidField, "headers"},
		{"body not UTF-8", func(h *Hook) { h.Body = []byte(secret) }, "", ""},
		{"claim", func(h *Hook) { h.Claim = &Claim{ref, digest, 0} }, "", ""},
		{"claim without a ref", func(h *Hook) { h.Claim = &Claim{SHA256: digest} }, CodeInvalidField, "claim"},
		{"claim without digest", func(h *Hook) { h.Claim = &Claim{Ref: ref} }, CodeInvalidField, "sha256"},
		{"claim with a short digest", func(h *Hook) { h.Claim = &Claim{ref, digest[1:], 1} }, CodeInvalidField, "sha256"},
		{"claim with a long digest", func(h *Hook) { h.Claim = &Claim{ref, digest + "0", 1} }, CodeInvalidField, "sha256"},
		{"claim with an uppercase digest", func(h *Hook) { h.Claim = &Claim{ref, strings.ToUpper(digest), 1} }, CodeInvalidField, "sha256"},
		{"claim with a digest of other letters", func(h *Hook) { h.Claim = &Claim{ref, digest[:63] + "g", 1} }, CodeInvalidField, "sha256"},
		{"claim with a negative size", func(h *Hook) { h.Claim = &Claim{ref, digest, -1} }, CodeInvalidField, "size"},
		{"another tenant's claim", func(h *Hook) { h.TenantID = "other"; h.Claim = &Claim{ref, digest, 1} }, CodeTenantMismatch, ""},
		{"a tenant's claim on a hook without one", func(h *Hook) { h.TenantID = ""; h.Claim = &Claim{ref, digest, 1} }, CodeTenantMismatch, ""},
		{"default's claim on a hook without tenant", func(h *Hook) {
			h.TenantID = ""
			h.Claim = &Claim{claim.Ref{Tenant: "default", ID: ref.ID}, digest, 1}
		}, "", ""},
		{"the first field that is wrong is named", func(h *Hook) { h.ReplayID, h.DedupeKey = secret, secret }, CodeInvalidField, "dedupe_key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := someHook()
			tt.change(h)
			err := h.Validate()
			if tt.code == "" {
				if err != nil {
					t.Fatalf("got %v, want none", err)
				}
				checkMessage(t, h, h.AppendTo(nil))
				return
			}
			checkRefusal(t, err, tt.code, tt.field)
		})
	}
}

func TestHeaderErrorNamesTheHeader(t *testing.T) {
	h := someHook()
	h.Headers = map[string]string{"x-c": secret, "x-b": secret, "x-a": "fine", "x-d": secret}
	for range 20 { // a map's order changes; the error must not
		if err := h.Validate(); err == nil || !strings.Contains(err.Error(), `"x-b"`) {
			t.Fatalf("got %v, want the first bad header, x-b", err)
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	h := someHook()
	h.DedupeKey = "a\u00e9\xc5z"
	const want = "permanent: message invalid_field: dedupe_key is not valid UTF-8 (byte 4 of 5)"
	if err := h.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParseClaim(t *testing.T) {
	got, err := ParseClaim(refText, digest, "65537")
	if err != nil || got.Ref.String() != refText || got.SHA256 != digest || got.Size != 65537 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, tt := range []struct{ ref, sha256, size, field string }{
		{"", digest, "1", "claim"},
		{"urn:ankusa:claim:v1:acme:01m39vmd8ra3c5hr4rbv67y002", digest, "1", "claim"},
		{refText + "\n", digest, "1", "claim"},
		{refText, "", "1", "sha256"},
		{refText, strings.ToUpper(digest), "1", "sha256"},
		{refText, digest, "", "size"},
		{refText, digest, "-1", "size"},
		{refText, digest, "+1", "size"},
		{refText, digest, "1.0", "size"},
		{refText, digest, "0x10", "size"},
		{refText, digest, "9223372036854775808", "size"},
		{refText, digest, " 1", "size"},
		{"", "", "", "claim"},
	} {
		got, err := ParseClaim(tt.ref, tt.sha256, tt.size)
		if err == nil {
			t.Errorf("ParseClaim(%q, %q, %q) = %v", tt.ref, tt.sha256, tt.size, got)
			continue
		}
		checkRefusal(t, err, CodeInvalidField, tt.field)
	}
}
