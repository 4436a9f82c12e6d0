package sqs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// wantPermanent checks a local refusal: its class, its code and what the operator reads.
func wantPermanent(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*classify.Error](err)
	if !ok || e.Class != classify.Permanent || e.Code != code {
		t.Fatalf("error = %v, want a permanent one with code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error = %v, want %q in it", err, w)
		}
	}
}

func TestValidateCharacters(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		words      []string // empty: taken
	}{
		{"U+0000", "ab\x00", []string{"U+0000", "byte 2"}},
		{"U+000B", "\x0b", []string{"U+000B", "byte 0"}},
		{"U+001F", "é\x1f", []string{"U+001F", "byte 2"}},
		{"U+FFFE", "a\ufffe", []string{"U+FFFE", "byte 1"}},
		{"U+FFFF", "a\uffff", []string{"U+FFFF", "byte 1"}},
		{"no UTF-8", "a\xc5z", []string{"not UTF-8 at byte 1"}},
		{"surrogate half", "a\xed\xa0\x80", []string{"not UTF-8 at byte 1"}},
		{"cut at the end", "aé\xc3", []string{"not UTF-8 at byte 3"}},
		{"above the last", "\xf4\x90\x80\x80", []string{"not UTF-8 at byte 0"}},
		{"tab", "\t", nil}, {"LF", "\n", nil}, {"CR", "\r", nil}, {"U+007F", "\x7f", nil}, {"U+0085", "\u0085", nil},
		{"U+D7FF", "\ud7ff", nil}, {"U+E000", "\ue000", nil}, {"U+FFFD", "\ufffd", nil},
		{"U+10000", "\U00010000", nil}, {"U+1F600", "\U0001f600", nil}, {"U+1FFFF", "\U0001ffff", nil}, {"U+10FFFF", "\U0010ffff", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asBody := &sqs.Entry{Body: []byte(tc.text)}
			asValue := &sqs.Entry{Body: []byte("x"), Attributes: []sqs.Attribute{{Name: "ankusa_dedupe_key", Value: tc.text}}}
			if tc.words == nil {
				if err := asBody.Validate(0); err != nil {
					t.Errorf("body: %v", err)
				}
				if err := asValue.Validate(0); err != nil {
					t.Errorf("attribute: %v", err)
				}
				return
			}
			wantPermanent(t, asBody.Validate(0), sqs.CodeInvalidField, append(tc.words, "message body")...)
			wantPermanent(t, asValue.Validate(0), sqs.CodeInvalidField, append(tc.words, "ankusa_dedupe_key")...)
			if err := asBody.ValidateEnvelope(1, 0); err != nil {
				t.Errorf("the envelope of a body that isn't looked at: %v", err)
			}
		})
	}
}

func TestValidateFields(t *testing.T) {
	attr := func(name, value string) sqs.Entry {
		return sqs.Entry{Body: []byte("x"), Attributes: []sqs.Attribute{{Name: name, Value: value}}}
	}
	many := func(n int) sqs.Entry {
		e := sqs.Entry{Body: []byte("x")}
		for i := range n {
			e.Attributes = append(e.Attributes, sqs.Attribute{Name: "a" + strings.Repeat("x", i), Value: "v"})
		}
		return e
	}
	group := func(id string) sqs.Entry { return sqs.Entry{Body: []byte("x"), GroupID: id} }
	dedup := func(id string) sqs.Entry { return sqs.Entry{Body: []byte("x"), DeduplicationID: id} }
	delay := func(d int32) sqs.Entry { return sqs.Entry{Body: []byte("x"), DelaySeconds: &d} }
	for _, tc := range []struct {
		name string
		e    sqs.Entry
		word string // empty: taken
	}{
		{"empty body", sqs.Entry{}, "empty"},
		{"10 attributes", many(10), ""},
		{"11 attributes", many(11), "11 attributes"},
		{"empty value", attr("ankusa_tenant_id", ""), "ankusa_tenant_id is empty"},
		{"twice", sqs.Entry{Body: []byte("x"), Attributes: []sqs.Attribute{{"a", "1"}, {"a", "2"}}}, "a occurs twice"},
		{"all characters of a name", attr("aZ0_-.x", "v"), ""},
		{"name of 256", attr(strings.Repeat("n", 256), "v"), ""},
		{"name of 257", attr(strings.Repeat("n", 257), "v"), "attribute name"},
		{"no name", attr("", "v"), "attribute name"},
		{"leading dot", attr(".a", "v"), "attribute name"},
		{"closing dot", attr("a.", "v"), "attribute name"},
		{"two dots", attr("a..b", "v"), "attribute name"},
		{"space in a name", attr("a b", "v"), "attribute name"},
		{"reserved", attr("Aws.x", "v"), "attribute name"},
		{"reserved too", attr("AMAZON.x", "v"), "attribute name"},
		{"not reserved", attr("awsx", "v"), ""},
		{"no group", group(""), ""},
		{"group of 128", group(strings.Repeat("g", 128)), ""},
		{"group of 129", group(strings.Repeat("g", 129)), "129 characters"},
		{"every character of a group", group("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~aZ9"), ""},
		{"space in a group", group("a b"), "U+0020 at byte 1"},
		{"umlaut in a group", group("aü"), "U+00FC at byte 1"},
		{"DEL in a group", group("\x7f"), "U+007F at byte 0"},
		{"dedup id of 90 with slash", dedup(strings.Repeat("a/", 45)), ""},
		{"dedup id of 129", dedup(strings.Repeat("d", 129)), "deduplication id has 129"},
		{"delay 0", delay(0), ""}, {"delay 900", delay(900), ""},
		{"delay 901", delay(901), "delay_seconds is 901"}, {"delay -1", delay(-1), "delay_seconds is -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.e.Validate(0)
			if tc.word == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantPermanent(t, err, sqs.CodeInvalidField, tc.word)
		})
	}
}

func TestSizeCountsBytesOfAttributesAndTypes(t *testing.T) {
	e := &sqs.Entry{Body: []byte("ü"), Attributes: []sqs.Attribute{{"ab", "é"}, {"c", "d"}}}
	const want = 2 + (2 + 6 + 2) + (1 + 6 + 1)
	if got := e.Size(); got != want {
		t.Errorf("Size = %d, want %d", got, want)
	}
	if got := e.EnvelopeSize(); got != want-2 {
		t.Errorf("EnvelopeSize = %d, want %d", got, want-2)
	}
}

func TestSizeLimitIsExact(t *testing.T) {
	a := []sqs.Attribute{{"name", "value"}} // 4 + 6 + 5
	for _, tc := range []struct {
		body, limit int
		ok          bool
	}{
		{1<<20 - 15, 0, true}, {1<<20 - 14, 0, false},
		{1<<20 - 15, 5 << 20, true}, {1<<20 - 14, 5 << 20, false}, // no limit above the service's
		{85, 100, true}, {86, 100, false},
	} {
		e := &sqs.Entry{Attributes: a}
		err := e.ValidateEnvelope(tc.body, tc.limit)
		if tc.ok {
			if err != nil {
				t.Errorf("%d of %d: %v", tc.body, tc.limit, err)
			}
			continue
		}
		wantPermanent(t, err, sqs.CodeTooLarge)
	}
	letters := &sqs.Entry{Body: []byte(strings.Repeat("ü", 60))} // 60 characters, 120 bytes
	wantPermanent(t, letters.Validate(100), sqs.CodeTooLarge, "120 bytes", "limit is 100")
}
