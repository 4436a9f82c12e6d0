package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPublishedExample(t *testing.T) {
	const want = `{"v":1,"id":"01a0","source_id":"stripe","tenant_id":"acme","received_at":1737500000000,"content_type":"application/json","size":5,"dedupe_key":"evt_1","replay_id":null,"idempotency_key":"acme:stripe:evt_1","headers":{"x-github-event":"push"},"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","body_base64":"aGVsbG8="}`
	h := Hook{
		ID: "01a0", SourceID: "stripe", TenantID: "acme", ReceivedAt: 1737500000000, ContentType: "application/json",
		DedupeKey: "evt_1", Headers: map[string]string{"x-github-event": "push"}, Body: []byte("hello"),
	}
	if got := string(h.AppendTo(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGolden(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.name, func(t *testing.T) {
			if err := v.hook.Validate(); err != nil {
				t.Fatal(err)
			}
			got := v.hook.AppendTo(nil)
			if !bytes.Equal(got, v.golden) {
				t.Errorf("got  %.2000s\nwant %.2000s", got, v.golden)
			}
			checkMessage(t, v.hook, got)
		})
	}
}

// checkMessage holds an encoded message against its hook with readers that are not ours.
func checkMessage(t *testing.T, h *Hook, raw []byte) {
	t.Helper()
	if got := h.Size(); got != len(raw) {
		t.Errorf("Size = %d, AppendTo appended %d bytes", got, len(raw))
	}
	for i, r := range string(raw) {
		// What SQS takes: #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF.
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			t.Errorf("U+%04X stands raw at byte %d", r, i)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatalf("not JSON: %v", err)
	}
	if !bytes.Equal(compact.Bytes(), raw) {
		t.Error("the message holds insignificant white space")
	}
	want := []string{"v", "id", "source_id", "tenant_id", "received_at", "content_type", "size", "dedupe_key", "replay_id", "idempotency_key", "headers", "sha256", "body_base64"}
	if h.Claim != nil {
		want = append(want[:11], "claim", "sha256")
	}
	if got := keysInOrder(t, raw); !slices.Equal(got, want) {
		t.Errorf("keys are %q, want %q", got, want)
	}
	var m struct {
		V              int
		ID             string
		SourceID       string  `json:"source_id"`
		TenantID       *string `json:"tenant_id"`
		ReceivedAt     int64   `json:"received_at"`
		ContentType    *string `json:"content_type"`
		Size           int64
		DedupeKey      *string `json:"dedupe_key"`
		ReplayID       *string `json:"replay_id"`
		IdempotencyKey string  `json:"idempotency_key"`
		Headers        json.RawMessage
		SHA256         string
		Claim          string
		Body           string `json:"body_base64"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	eq(t, "v", m.V, 1)
	eq(t, "id", m.ID, h.ID)
	eq(t, "source_id", m.SourceID, h.SourceID)
	eqNullable(t, "tenant_id", m.TenantID, h.TenantID)
	eq(t, "received_at", m.ReceivedAt, h.ReceivedAt)
	eqNullable(t, "content_type", m.ContentType, h.ContentType)
	eqNullable(t, "dedupe_key", m.DedupeKey, h.DedupeKey)
	eqNullable(t, "replay_id", m.ReplayID, h.ReplayID)
	eq(t, "idempotency_key", m.IdempotencyKey, h.IdempotencyKey())
	var headers map[string]string
	if err := json.Unmarshal(m.Headers, &headers); err != nil || !maps.Equal(headers, h.Headers) {
		t.Errorf("headers are %s (%v), want %q", m.Headers, err, h.Headers)
	}
	if names := keysInOrder(t, m.Headers); !slices.IsSorted(names) {
		t.Errorf("header names %q are not sorted", names)
	}
	if h.Claim != nil {
		eq(t, "claim", m.Claim, h.Claim.Ref.String())
		eq(t, "sha256", m.SHA256, h.Claim.SHA256)
		eq(t, "size", m.Size, h.Claim.Size)
		return
	}
	sum := sha256.Sum256(h.Body)
	eq(t, "sha256", m.SHA256, hex.EncodeToString(sum[:]))
	eq(t, "size", m.Size, int64(len(h.Body)))
	eq(t, "body_base64", m.Body, base64.StdEncoding.EncodeToString(h.Body))
}

func eq[T comparable](t *testing.T, field string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", field, got, want)
	}
}

func eqNullable(t *testing.T, field string, got *string, want string) {
	t.Helper()
	if want == "" && got != nil || want != "" && (got == nil || *got != want) {
		t.Errorf("%s is %v, want %q", field, got, want)
	}
}

// keysInOrder returns the keys of the object raw as they stand.
func keysInOrder(t *testing.T, raw []byte) (keys []string) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func TestOneSpellingPerCharacter(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", `""`},
		{`"\`, `"\"\\"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x0b\x1f", `"\u0000\u0001\u000b\u001f"`},
		{"\x7f\u0080\u0085", "\"\x7f\u0080\u0085\""},
		{"<>&/'`", "\"<>&/'`\""},
		{"\u2028\u2029", "\"\u2028\u2029\""},
		{"\ufffe", `"\ufffe"`},
		{"a\uffffb\ufffec", `"a\uffffb\ufffec"`},
		{"\ufffd\uff00\uf8ff\ufefe\uffbe", "\"\ufffd\uff00\uf8ff\ufefe\uffbe\""},
		{"\U0001fffe\U0001ffff\U0010fffe\U0010ffff", "\"\U0001fffe\U0001ffff\U0010fffe\U0010ffff\""},
		{"\ufdd0\ue000\ud7ff", "\"\ufdd0\ue000\ud7ff\""},
	}
	for _, tt := range tests {
		got := string(appendString(nil, tt.in))
		if got != tt.want {
			t.Errorf("%q is written %s, want %s", tt.in, got, tt.want)
		}
		if n := stringLen(tt.in); n != len(got) {
			t.Errorf("stringLen(%q) = %d, want %d", tt.in, n, len(got))
		}
	}
}

// Every character of the basic plane, and of the others the two at each end, which SQS takes raw though
// they are noncharacters like U+FFFE.
func TestEveryCharacterTravels(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r > 0xFFFF && r&0xFFFF > 1 && r&0xFFFF < 0xFFFE {
			continue
		}
		if 0xD800 <= r && r <= 0xDFFF {
			continue // halves of pairs, which UTF-8 has not
		}
		in := string(r)
		out := appendString(nil, in)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != in {
			t.Fatalf("%U is written %q and read as %q, %v", r, out, back, err)
		}
		if len(out) != stringLen(in) {
			t.Fatalf("stringLen is %d for %q", stringLen(in), out)
		}
		if raw := utf8.RuneLen(r) == len(out)-2; raw != (r >= 0x20 && r != '"' && r != '\\' && r != 0xFFFE && r != 0xFFFF) {
			t.Fatalf("%U is written %q", r, out)
		}
	}
}

func TestAppendToKeepsWhatIsThere(t *testing.T) {
	for _, v := range vectors(t) {
		body := bytes.Clone(v.body)
		got := v.hook.AppendTo([]byte("before"))
		if want := append([]byte("before"), v.golden...); !bytes.Equal(got, want) {
			t.Errorf("%s: got %.200s", v.name, got)
		}
		if v.hook.Claim == nil && !bytes.Equal(v.hook.Body, body) {
			t.Errorf("%s: the body was altered", v.name)
		}
	}
}

func TestAppendToAllocatesNothingWithRoom(t *testing.T) {
	for _, v := range vectors(t) {
		buf := make([]byte, 0, v.hook.Size())
		var out []byte
		if n := testing.AllocsPerRun(20, func() { out = v.hook.AppendTo(buf) }); n != 0 {
			t.Errorf("%s: %v allocations", v.name, n)
		}
		if &out[0] != &buf[:1][0] {
			t.Errorf("%s: the message left the buffer", v.name)
		}
		if n := testing.AllocsPerRun(20, func() { _ = v.hook.Size() }); n != 0 {
			t.Errorf("%s: Size makes %v allocations", v.name, n)
		}
	}
}

// Room for the body and then, in another step, for two bytes after it would copy the body.
func TestAppendToGrowsOnceForTheBody(t *testing.T) {
	allocated := func(h *Hook) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.AppendTo(nil)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	// Slices of this length are rounded up to whole pages. Of the first hook's message all but the last
	// two bytes fill pages to the brim, of the second's there is a page to spare.
	const page, end = 8192, 2
	full := &Hook{ID: "i", SourceID: "s", Body: make([]byte, 3<<18)}
	for (full.Size()-end)%page != 0 {
		full.ContentType += "a"
	}
	spare := *full
	spare.ContentType += "aaa"
	if got, want := allocated(full), allocated(&spare); got > want+want/4 {
		t.Errorf("%d bytes allocated, want about %d", got, want)
	}
}

func TestManyHeadersAreSortedToo(t *testing.T) {
	h := Hook{ID: "i", SourceID: "s", Headers: map[string]string{}}
	for i := range 3 * stackHeaders {
		h.Headers["x-"+strings.Repeat("a", i%7)+string(rune('a'+i%26))+strings.Repeat("b", i)] = "v"
	}
	checkMessage(t, &h, h.AppendTo(nil))
}

func TestClaimFormIgnoresTheBody(t *testing.T) {
	for _, v := range vectors(t) {
		if v.hook.Claim == nil {
			continue
		}
		v.hook.Body = []byte("not this")
		if got := v.hook.AppendTo(nil); !bytes.Equal(got, v.golden) {
			t.Errorf("%s: got %s", v.name, got)
		}
	}
}
