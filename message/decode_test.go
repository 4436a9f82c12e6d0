package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// sound is a message's members; each test of Decode changes some of them.
func sound() map[string]string {
	return map[string]string{
		"v": "1", "id": `"01a0"`, "source_id": `"stripe"`, "tenant_id": `"acme"`, "received_at": "1737500000000",
		"content_type": `"application/json"`, "size": "5", "dedupe_key": `"evt_1"`, "replay_id": "null",
		"idempotency_key": `"acme:stripe:evt_1"`, "headers": `{"x-github-event":"push"}`,
		"sha256": `"` + digest + `"`, "body_base64": `"aGVsbG8="`,
	}
}

// with returns the message with members set, or taken out where the value is "".
func with(members ...string) string {
	m := sound()
	for kv := range slices.Chunk(members, 2) {
		if m[kv[0]] = kv[1]; kv[1] == "" {
			delete(m, kv[0])
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%q:%s", k, m[k]))
	}
	return "{" + strings.Join(out, ",") + "}"
}

func TestDecode(t *testing.T) {
	const claimed = `"` + refText + `"`
	tests := []struct {
		name, in    string
		code, field string // "" when the message is sound
	}{
		{"as it is", with(), "", ""},
		{"white space", " \t\r\n" + strings.NewReplacer(":", " : ", ",", "\r\n,\t").Replace(`{"v":1,"id":"a","source_id":"s","received_at":1,"size":0,"body_base64":""}`) + "\n ", "", ""},
		{"unknown keys", with("zz", `{"a":[1,2.5e-3,true,null,{"b":"\u0000"}]}`, "V", "2", "ID", "0", "", "1"), "", ""},

		// Rule 1: not JSON.
		{"nothing", "", CodeInvalidJSON, ""},
		{"white space only", " \n", CodeInvalidJSON, ""},
		{"cut short", with()[:100], CodeInvalidJSON, ""},
		{"something after it", with() + "x", CodeInvalidJSON, ""},
		{"two of them", with() + "\n" + with(), CodeInvalidJSON, ""},
		{"byte order mark", "\ufeff" + with(), CodeInvalidJSON, ""},
		{"not UTF-8 in a field", with("dedupe_key", "\"a\xc5z\""), CodeInvalidJSON, ""},
		{"not UTF-8 in an unknown key", with("zz", "\"\xff\""), CodeInvalidJSON, ""},
		{"not UTF-8 and no object", "\"\xff\"", CodeInvalidJSON, ""},
		{"a surrogate in three bytes", with("dedupe_key", "\"\xed\xa0\x80\""), CodeInvalidJSON, ""},
		{"an overlong slash", with("dedupe_key", "\"\xc0\xaf\""), CodeInvalidJSON, ""},
		{"a raw line end in a string", with("dedupe_key", "\"a\nb\""), CodeInvalidJSON, ""},
		{"a raw NUL in a string", with("dedupe_key", "\"\x00\""), CodeInvalidJSON, ""},
		{"a NUL after it", with() + "\x00", CodeInvalidJSON, ""},
		{"an escape that is none", with("dedupe_key", `"\x41"`), CodeInvalidJSON, ""},
		{"a short escape", with("dedupe_key", `"\u12"`), CodeInvalidJSON, ""},
		{"the first half of a pair", with("dedupe_key", `"\ud83d"`), CodeInvalidJSON, ""},
		{"the first half and a letter", with("dedupe_key", `"\ud83d\u0041"`), CodeInvalidJSON, ""},
		{"the second half", with("dedupe_key", `"\ude00"`), CodeInvalidJSON, ""},
		{"a pair the wrong way round", with("dedupe_key", `"\ude00\ud83d"`), CodeInvalidJSON, ""},
		{"half a pair where nobody reads", with("zz", `[{"\uD800":1}]`), CodeInvalidJSON, ""},
		{"a comma too many", `{"v":1,}`, CodeInvalidJSON, ""},
		{"a comma too many inside", with("zz", "[1,]"), CodeInvalidJSON, ""},
		{"brackets crossed", with("zz", `[{"a":1]}`), CodeInvalidJSON, ""},
		{"a key that is no string", `{v:1}`, CodeInvalidJSON, ""},
		{"a leading zero", with("size", "05"), CodeInvalidJSON, ""},
		{"a plus sign", with("size", "+5"), CodeInvalidJSON, ""},
		{"a point without digits", with("zz", "1."), CodeInvalidJSON, ""},
		{"an exponent without digits", with("zz", "1e+"), CodeInvalidJSON, ""},
		{"a minus alone", with("zz", "-"), CodeInvalidJSON, ""},
		{"not a number", with("zz", "NaN"), CodeInvalidJSON, ""},
		{"a comment", with("zz", "1/*x*/"), CodeInvalidJSON, ""},
		{"single quotes", with("zz", "'a'"), CodeInvalidJSON, ""},
		{"cut short, and no object", "[1,2", CodeInvalidJSON, ""},
		{"no object", "[" + with() + "]", CodeNotAnObject, ""},
		{"null", "null", CodeNotAnObject, ""},
		{"a string", ` "a" `, CodeNotAnObject, ""},
		{"a number", "-0.5E+7", CodeNotAnObject, ""},

		// Rule 2: the version.
		{"no version", with("v", ""), CodeUnsupportedVersion, ""},
		{"version 2", with("v", "2"), CodeUnsupportedVersion, ""},
		{"version 11", with("v", "11"), CodeUnsupportedVersion, ""},
		{"version 0", with("v", "0"), CodeUnsupportedVersion, ""},
		{"version -1", with("v", "-1"), CodeUnsupportedVersion, ""},
		{"version 1.0", with("v", "1.0"), CodeUnsupportedVersion, ""},
		{"version 1e0", with("v", "1e0"), CodeUnsupportedVersion, ""},
		{"version \"1\"", with("v", `"1"`), CodeUnsupportedVersion, ""},
		{"version true", with("v", "true"), CodeUnsupportedVersion, ""},
		{"version null", with("v", "null"), CodeUnsupportedVersion, ""},
		{"version [1]", with("v", "[1]"), CodeUnsupportedVersion, ""},
		{"nothing else", "{}", CodeUnsupportedVersion, ""},

		// Rule 3: types.
		{"no id", with("id", ""), CodeInvalidField, "id"},
		{"id null", with("id", "null"), CodeInvalidField, "id"},
		{"id empty", with("id", `""`), CodeInvalidField, "id"},
		{"id a number", with("id", "1"), CodeInvalidField, "id"},
		{"id in escapes", with("id", `"\u0041"`), "", ""},
		{"no source", with("source_id", ""), CodeInvalidField, "source_id"},
		{"source null", with("source_id", "null"), CodeInvalidField, "source_id"},
		{"source a number", with("source_id", "5"), CodeInvalidField, "source_id"},
		{"source empty", with("source_id", `""`), "", ""},
		{"source of any characters", with("source_id", `"a/b \u2028"`), "", ""},
		{"no received_at", with("received_at", ""), CodeInvalidField, "received_at"},
		{"received_at text", with("received_at", `"1737500000000"`), CodeInvalidField, "received_at"},
		{"received_at with a fraction", with("received_at", "1737500000000.0"), CodeInvalidField, "received_at"},
		{"received_at with an exponent", with("received_at", "17375E8"), CodeInvalidField, "received_at"},
		{"received_at minus nought", with("received_at", "-0"), CodeInvalidField, "received_at"},
		{"received_at before 1970", with("received_at", "-1"), "", ""},
		{"received_at last", with("received_at", "9223372036854775807"), "", ""},
		{"received_at first", with("received_at", "-9223372036854775808"), "", ""},
		{"received_at one too many", with("received_at", "9223372036854775808"), CodeInvalidField, "received_at"},
		{"received_at one too few", with("received_at", "-9223372036854775809"), CodeInvalidField, "received_at"},
		{"received_at far too many", with("received_at", "1"+strings.Repeat("0", 400)), CodeInvalidField, "received_at"},
		{"received_at around 2^64", with("received_at", "18446744073709551617"), CodeInvalidField, "received_at"},
		{"no size", with("size", ""), CodeInvalidField, "size"},
		{"size negative", with("size", "-5"), CodeInvalidField, "size"},
		{"size minus nought", with("size", "-0"), CodeInvalidField, "size"},
		{"size with a fraction", with("size", "5.0"), CodeInvalidField, "size"},
		{"size text", with("size", `"5"`), CodeInvalidField, "size"},
		{"tenant a number", with("tenant_id", "5"), CodeInvalidField, "tenant_id"},
		{"tenant absent", with("tenant_id", ""), "", ""},
		{"tenant null", with("tenant_id", "null"), "", ""},
		{"tenant of any characters", with("tenant_id", `"é/"`), "", ""},
		{"content type an array", with("content_type", `["a"]`), CodeInvalidField, "content_type"},
		{"content type absent", with("content_type", ""), "", ""},
		{"dedupe key false", with("dedupe_key", "false"), CodeInvalidField, "dedupe_key"},
		{"dedupe key with U+FFFE raw", with("dedupe_key", "\"\ufffe\""), "", ""},
		{"replay id an object", with("replay_id", "{}"), CodeInvalidField, "replay_id"},
		{"idempotency key a number", with("idempotency_key", "1.5"), CodeInvalidField, "idempotency_key"},
		{"idempotency key absent", with("idempotency_key", ""), "", ""},
		{"headers absent", with("headers", ""), "", ""},
		{"headers null", with("headers", "null"), "", ""},
		{"headers empty", with("headers", "{ }"), "", ""},
		{"headers an array", with("headers", `[]`), CodeInvalidField, "headers"},
		{"headers text", with("headers", `"a"`), CodeInvalidField, "headers"},
		{"header null", with("headers", `{"a":"b","c":null}`), CodeInvalidField, "headers"},
		{"header of two values", with("headers", `{"a":["b"]}`), CodeInvalidField, "headers"},
		{"header a number, then text", with("headers", `{"a":1,"a":"b"}`), CodeInvalidField, "headers"},
		{"header repeated", with("headers", `{"a":"1","a":"2"}`), "", ""},
		{"digest absent", with("sha256", ""), "", ""},
		{"digest null", with("sha256", "null"), "", ""},
		{"digest empty", with("sha256", `""`), CodeInvalidField, "sha256"},
		{"digest short", with("sha256", `"`+digest[1:]+`"`), CodeInvalidField, "sha256"},
		{"digest uppercase", with("sha256", `"`+strings.ToUpper(digest)+`"`), CodeInvalidField, "sha256"},
		{"digest a number", with("sha256", strings.Repeat("1", 64)), CodeInvalidField, "sha256"},
		{"digest in escapes", with("sha256", `"\u0032`+digest[1:]+`"`), "", ""},

		// Rule 4: one of body and claim.
		{"both", with("claim", claimed), CodeAmbiguousBody, ""},
		{"both, of odd types", with("claim", "5", "body_base64", "[]"), CodeAmbiguousBody, ""},
		{"neither", with("body_base64", ""), CodeMissingBody, ""},
		{"body null", with("body_base64", "null"), CodeMissingBody, ""},
		{"body null, claim there", with("body_base64", "null", "claim", claimed), "", ""},
		{"claim null, body there", with("claim", "null"), "", ""},
		{"body a number", with("body_base64", "5"), CodeInvalidBodyBase64, ""},
		{"body without padding", with("body_base64", `"aGVsbG8"`), CodeInvalidBodyBase64, ""},
		{"body with padding too much", with("body_base64", `"aGVsbG8=="`), CodeInvalidBodyBase64, ""},
		{"body of the URL alphabet", with("body_base64", `"_-8="`, "size", "2", "sha256", ""), CodeInvalidBodyBase64, ""},
		{"body of the standard alphabet", with("body_base64", `"/+8="`, "size", "2", "sha256", ""), "", ""},
		{"body with escaped slashes", with("body_base64", `"\/\u002b8\u003D"`, "size", "2", "sha256", ""), "", ""},
		{"body with an escaped line end", with("body_base64", `"aGVs\nbG8="`), CodeInvalidBodyBase64, ""},
		{"body with an escaped CR LF at its end", with("body_base64", `"aGVsbG8=\r\n"`), CodeInvalidBodyBase64, ""},
		{"body with a space", with("body_base64", `"aGVs bG8="`), CodeInvalidBodyBase64, ""},
		{"body with bits after its end", with("body_base64", `"aGVsbG9="`), CodeInvalidBodyBase64, ""},
		{"body with padding in the middle", with("body_base64", `"aA==aA=="`), CodeInvalidBodyBase64, ""},
		{"body with a letter of two bytes", with("body_base64", `"é=="`), CodeInvalidBodyBase64, ""},
		{"body with a letter of two bytes, escaped", with("body_base64", `"aGVsbG8\u013d"`), CodeInvalidBodyBase64, ""}, // its low byte is "="
		{"body empty", with("body_base64", `""`, "size", "0", "sha256", "null"), "", ""},
		{"claim a number", with("body_base64", "", "claim", "5"), CodeInvalidField, "claim"},
		{"claim empty", with("body_base64", "", "claim", `""`), CodeInvalidField, "claim"},
		{"claim no ref", with("body_base64", "", "claim", `"urn:ankusa:claim:v1:acme:x"`), CodeInvalidField, "claim"},
		{"claim lowercase", with("body_base64", "", "claim", strings.ToLower(claimed)), CodeInvalidField, "claim"},
		{"claim", with("body_base64", "", "claim", claimed), "", ""},
		{"claim in escapes", with("body_base64", "", "claim", strings.Replace(claimed, "urn", `\u0075rn`, 1)), "", ""},
		{"claim without digest", with("body_base64", "", "claim", claimed, "sha256", ""), CodeInvalidField, "sha256"},
		{"claim with digest null", with("body_base64", "", "claim", claimed, "sha256", "null"), CodeInvalidField, "sha256"},

		// Rules 5 and 6.
		{"size too small", with("size", "4"), CodeSizeMismatch, ""},
		{"size too large", with("size", "6"), CodeSizeMismatch, ""},
		{"another body", with("body_base64", `"aGVsbG9v"`, "size", "6"), CodeIntegrity, ""},
		{"another body, no digest", with("body_base64", `"aGVsbG9v"`, "size", "6", "sha256", ""), "", ""},
		{"another tenant's claim", with("body_base64", "", "claim", claimed, "tenant_id", `"other"`), CodeTenantMismatch, ""},
		{"a claim and an empty tenant", with("body_base64", "", "claim", claimed, "tenant_id", `""`), CodeTenantMismatch, ""},
		{"a claim and tenant null", with("body_base64", "", "claim", claimed, "tenant_id", "null"), "", ""},
		{"a claim and no tenant", with("body_base64", "", "claim", claimed, "tenant_id", ""), "", ""},
		{"a claim's size is not known", with("body_base64", "", "claim", claimed, "size", "9223372036854775807"), "", ""},

		// Of a repeated key the last counts, however it is spelt.
		{"version repeated", `{"v":2,` + with()[1:], "", ""},
		{"version repeated, wrong at last", strings.TrimSuffix(with(), "}") + `,"v":2}`, CodeUnsupportedVersion, ""},
		{"version repeated in escapes", strings.TrimSuffix(with(), "}") + `,"\u0076":2}`, CodeUnsupportedVersion, ""},
		{"a key all in escapes", strings.Replace(with(), `"id"`, `"\u0069\u0064"`, 1), "", ""},
		{"a long key in escapes", with(strings.Repeat("x", 200), "1", "zz", "2"), "", ""},
		{"claim repeated, null at last", strings.TrimSuffix(with(), "}") + `,"claim":"x","claim":null}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := []byte(tt.in)
			if code, field := oracle(raw); code != tt.code || field != tt.field {
				t.Errorf("the rules as written say %q %q, this test %q %q", code, field, tt.code, tt.field)
			}
			d, err := Decode(raw)
			if tt.code != "" {
				if d != nil {
					t.Error("a message that is refused was returned too")
				}
				checkRefusal(t, err, tt.code, tt.field)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(d.Raw) != tt.in || &d.Raw[0] != &raw[0] {
				t.Error("Raw is not the message as it came")
			}
		})
	}
}

// Each rule broken together with each later one: the earlier must win.
func TestDecodeRulesHaveAnOrder(t *testing.T) {
	claimed := `"` + refText + `"`
	rules := []struct{ code, field, key, value string }{
		{CodeInvalidJSON, "", "zz", "01"},
		{CodeUnsupportedVersion, "", "v", "2"},
		{CodeInvalidField, "id", "id", "null"},
		{CodeInvalidField, "source_id", "source_id", "null"},
		{CodeInvalidField, "received_at", "received_at", "null"},
		{CodeInvalidField, "size", "size", "null"},
		{CodeInvalidField, "tenant_id", "tenant_id", "0"},
		{CodeInvalidField, "content_type", "content_type", "0"},
		{CodeInvalidField, "dedupe_key", "dedupe_key", "0"},
		{CodeInvalidField, "replay_id", "replay_id", "0"},
		{CodeInvalidField, "idempotency_key", "idempotency_key", "0"},
		{CodeInvalidField, "headers", "headers", "0"},
		{CodeInvalidField, "sha256", "sha256", "0"},
		{CodeAmbiguousBody, "", "claim", claimed},
		{CodeInvalidBodyBase64, "", "body_base64", `"aGVsbG8"`},
		{CodeSizeMismatch, "", "size", "4"},
		{CodeIntegrity, "", "sha256", `"` + strings.Repeat("0", 64) + `"`},
	}
	for i, first := range rules {
		for _, second := range rules[i+1:] {
			if first.key == second.key {
				continue
			}
			_, err := Decode([]byte(with(first.key, first.value, second.key, second.value)))
			if e, ok := errors.AsType[*classify.Error](err); !ok || e.Code != first.code || !strings.HasPrefix(e.Message, first.field) {
				t.Errorf("%s and %s broken: got %v, want %s %s", first.key, second.key, err, first.code, first.field)
			}
		}
	}
	for _, tt := range []struct{ in, code string }{
		{with("body_base64", "", "claim", `"x"`, "sha256", ""), "claim"},
		{with("body_base64", "", "claim", claimed, "sha256", "", "tenant_id", `"other"`), "sha256"},
	} {
		_, err := Decode([]byte(tt.in))
		checkRefusal(t, err, CodeInvalidField, tt.code)
	}
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	for _, v := range vectors(t) {
		d, err := Decode(v.golden)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		checkDecoded(t, d, v.hook)
	}
}

func checkDecoded(t *testing.T, d *Decoded, h *Hook) {
	t.Helper()
	got, want := d.Hook(), *h
	if want.Claim != nil || len(want.Body) == 0 {
		want.Body, got.Body = nil, got.Body[:len(got.Body):len(got.Body)]
		if len(got.Body) == 0 {
			got.Body = nil
		}
	}
	if len(want.Headers) == 0 {
		want.Headers = nil
	}
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("got %.500v, want %.500v", got, &want)
	}
	size := int64(len(h.Body))
	if h.Claim != nil {
		size = h.Claim.Size
	}
	eq(t, "size", d.Size, size)
	eq(t, "inline", d.Inline(), h.Claim == nil)
	eq(t, "idempotency key", d.IdempotencyKey(), h.IdempotencyKey())
}

// Producers differ in what they escape: PHP writes \/, others every letter outside ASCII.
func TestDecodeReadsOtherSpellings(t *testing.T) {
	for _, v := range vectors(t) {
		var spelt bytes.Buffer
		inString := false
		for _, r := range string(v.golden) {
			switch {
			case r == '"':
				inString = !inString
			case inString && r == '/':
				spelt.WriteByte('\\')
			case r > 0xffff:
				r -= 0x10000
				fmt.Fprintf(&spelt, `\u%04X\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3ff)
				continue
			case r > 0x7e:
				fmt.Fprintf(&spelt, `\u%04X`, r)
				continue
			}
			spelt.WriteRune(r)
		}
		if strings.Contains(string(v.golden), `\"`) {
			continue // the quotes above are not told from escaped ones
		}
		d, err := Decode(spelt.Bytes())
		if err != nil {
			t.Errorf("%s: %v in %.300s", v.name, err, spelt.Bytes())
			continue
		}
		checkDecoded(t, d, v.hook)
	}
}

// Bodies around the size of the pieces they are decoded in, with and without escapes, sound and with
// one character wrong in any piece.
func TestDecodeBodiesOfManyPieces(t *testing.T) {
	for _, n := range []int{1, 3071, 3072, 3073, 6144, 9_999} {
		h := Hook{ID: "i", SourceID: "s", Body: pattern(n)}
		plain := string(h.AppendTo(nil))
		body64 := base64.StdEncoding.EncodeToString(h.Body)
		for name, raw := range map[string]string{
			"plain":   plain,
			"escaped": strings.ReplaceAll(plain, "A", `\u0041`),
			"first":   strings.Replace(plain, body64, `\u00`+fmt.Sprintf("%02x", body64[0])+body64[1:], 1),
		} {
			if name == "escaped" { // the digest has no capital A, and neither has a key
				raw = strings.ReplaceAll(raw, "/", `\/`)
			}
			d, err := Decode([]byte(raw))
			if err != nil {
				t.Fatalf("%d bytes, %s: %v", n, name, err)
			}
			if !bytes.Equal(d.AppendBody([]byte("x")), append([]byte("x"), h.Body...)) {
				t.Errorf("%d bytes, %s: another body", n, name)
			}
			start, end := strings.Index(raw, `"body_base64":"`)+15, len(raw)-2
			for at := start; at < end; at += 4093 {
				for _, wrong := range []string{"=", "*", "\u00e9", `\n`, `\u0000`} {
					broken := raw[:at] + wrong + raw[at+1:]
					if broken == raw {
						continue
					}
					code, _ := oracle([]byte(broken))
					_, err := Decode([]byte(broken))
					if e := classify.Of(err); e == nil || e.Code != code || code == "" {
						t.Errorf("%d bytes, %s, %q at %d: got %v, want %s", n, name, wrong, at-start, err, code)
					}
				}
			}
		}
	}
}

func TestDecodeIsNotMovedByDepth(t *testing.T) {
	nest := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	for _, tt := range []struct{ name, in, code string }{
		{"as deep as it may be", with("zz", nest("[", "]", maxDepth-1)), ""},
		{"one deeper", with("zz", nest("[", "]", maxDepth)), CodeInvalidJSON},
		{"objects", with("zz", nest(`{"a":`, "}", maxDepth-1)), ""},
		{"objects one deeper", with("zz", nest(`{"a":`, "}", maxDepth)), CodeInvalidJSON},
		{"both by turns", with("zz", nest(`[{"a":`, "}]", (maxDepth-2)/2)), ""},
		{"both by turns, shut in the wrong order", with("zz", nest(`[{"a":`, "]}", 500)), CodeInvalidJSON},
		{"no object, as deep as it may be", nest("[", "]", maxDepth), CodeNotAnObject},
		{"no object, one deeper", nest("[", "]", maxDepth+1), CodeInvalidJSON},
		{"a bomb", strings.Repeat("[", 10_000_000), CodeInvalidJSON},
		{"a bomb of objects", strings.Repeat(`{"a":`, 2_000_000), CodeInvalidJSON},
		{"in the headers", with("headers", nest(`{"a":`, "}", 5000)), CodeInvalidField},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code, _ := oracle([]byte(tt.in)); code != tt.code {
				t.Errorf("the rules as written say %q", code)
			}
			_, err := Decode([]byte(tt.in))
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			checkRefusal(t, err, tt.code, "")
		})
	}
}

// What a hostile message makes Decode allocate is bounded, whatever its length.
func TestDecodeAllocatesLittle(t *testing.T) {
	body := Hook{ID: "i", SourceID: "s", Body: make([]byte, 1<<18)}
	for name, raw := range map[string][]byte{
		"a body":                body.AppendTo(nil),
		"a body in escapes":     bytes.Replace(body.AppendTo(nil), []byte("AAAA"), []byte(`A\u0041AA`), 1000),
		"keys":                  []byte(with("zz", "{"+strings.Repeat(`"a":1,`, 20_000)+`"b":2}`)),
		"a key of escapes":      []byte(strings.Replace(with("zz", "1"), "zz", strings.Repeat(`\u0061`, 20_000), 1)),
		"headers":               []byte(with("headers", "{"+strings.Repeat(`"a":"b",`, 20_000)+`"b":"c"}`)),
		"headers of no strings": []byte(with("headers", "{"+strings.Repeat(`"a":2,`, 20_000)+`"b":"c"}`)),
		"depth":                 bytes.Repeat([]byte("["), 1<<18),
		"repeated fields":       []byte(`{` + strings.Repeat(`"dedupe_key":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",`, 5_000) + with()[1:]),
	} {
		_, _ = Decode(raw) // fills the pool
		const runs = 3
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			_, _ = Decode(raw)
		}
		runtime.ReadMemStats(&after)
		n := (after.TotalAlloc - before.TotalAlloc) / runs
		if n > 16<<10 { // well above the 0.5 KiB of fields; a pool that lost its checker makes another of 7 KiB
			t.Errorf("%s: %d bytes allocated for a message of %d", name, n, len(raw))
		}
	}
}

func TestDecodedHeadersAreTheLastOfEachName(t *testing.T) {
	d, err := Decode([]byte(with("headers", `{"a":"1","\u0061":"2","b\u0000\/":"\ud83d\ude00","":""}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "2", "b\x00/": "\U0001f600", "": ""}
	if got := d.Headers(); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, none := range []string{"", "null", "{}"} {
		d, err := Decode([]byte(with("headers", none)))
		if err != nil || d.Headers() != nil {
			t.Errorf("headers %q are %v, %v", none, d.Headers(), err)
		}
	}
}

// Errors are read by operators and by a fallback output, and go to logs.
func TestDecodeErrorsHoldNoValues(t *testing.T) {
	const secret = `"s3cret"`
	for _, in := range []string{
		with("zz", secret+"x"), with("v", secret), with("id", "["+secret+"]"), with("received_at", secret), with("headers", secret),
		with("sha256", secret), with("body_base64", secret), with("body_base64", "", "claim", secret),
		with("body_base64", "", "claim", `"`+refText+`"`, "tenant_id", secret), secret, with("zz", "\"s3cret\xff\""),
	} {
		_, err := Decode([]byte(in))
		checkRefusal(t, err, classify.Of(err).Code, "")
	}
	_, err := Decode([]byte(`{"a":[1 2]}`))
	const want = "permanent: message invalid_json: a comma or the closing bracket must follow a value (byte 9 of 11)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Real readers keep the members that this program does not know; so must what is passed on.
func TestDecodeKeepsUnknownMembers(t *testing.T) {
	in := []byte(with("trace", `{"id":"7","deep":[1,{"x":null}]}`))
	d, err := Decode(in)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(d.Raw, &m); err != nil || string(m["trace"]) != `{"id":"7","deep":[1,{"x":null}]}` {
		t.Errorf("trace is %s, %v", m["trace"], err)
	}
}
