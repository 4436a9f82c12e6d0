package jsonstring_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/internal/jsonstring"
)

func TestAppendEscapesOnlyWhatJSONDemands(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", `""`},
		{"abc", `"abc"`},
		{`"\`, `"\"\\"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x0b\x1f", `"\u0000\u0001\u000b\u001f"`},
		{" !#[]\x7f", "\" !#[]\x7f\""},
		{"<>&/'`", "\"<>&/'`\""},
		{"é\u2028\u2029\ufffe😀", "\"é\u2028\u2029\ufffe😀\""},
		{"not\xffUTF-8\xc3", "\"not\xffUTF-8\xc3\""},
		{`1234567"`, `"1234567\""`},
		{`12345678"`, `"12345678\""`},
		{`"12345678`, `"\"12345678"`},
	} {
		check(t, tc.in)
		if got := string(jsonstring.Append(nil, tc.in)); got != tc.want {
			t.Errorf("Append(%q) = %s, want %s", tc.in, got, tc.want)
		}
	}
}

// Every byte at every place of the words that are looked at together, beside every kind of neighbour: a
// borrow from one byte must not hide or make a hit in the next.
func TestEveryByteAtEveryOffset(t *testing.T) {
	for c := range 256 {
		for length := 1; length <= 17; length++ {
			for at := range length {
				for _, fill := range []byte{'a', '"', '\\', '!', '#', ' ', '[', ']', 0, 2, 0x1f, 0x7f, 0x80, 0xa0, 0xa2, 0xdc, 0xff} {
					s := bytes.Repeat([]byte{fill}, length)
					s[at] = byte(c)
					if got, want := jsonstring.Append(nil, s), plain(string(s)); string(got) != want {
						t.Fatalf("Append(%q) = %s, want %s", s, got, want)
					}
					if got, want := jsonstring.Len(s), len(plain(string(s))); got != want {
						t.Fatalf("Len(%q) = %d, want %d", s, got, want)
					}
				}
			}
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	s := strings.Repeat("plain and \"quoted\"\n", 100)
	b := []byte(s)
	dst := make([]byte, 0, jsonstring.Len(s))
	if n := testing.AllocsPerRun(10, func() {
		dst = jsonstring.Append(dst[:0], s)
		dst = jsonstring.Append(dst[:0], b)
		dst = jsonstring.AppendInside(dst[:0], "clean")
		_ = jsonstring.Len(s) + jsonstring.LenInside(b)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("")
	f.Add("plain \"and\" \\ \t é 😀 <>& \u2028 \ufffe")
	f.Add("\x00\x01\b\f\n\r\x1f\x7f\x80\xff")
	f.Add(strings.Repeat("12345678", 9) + `"`)
	f.Fuzz(check)
}

// check holds what Append makes of s to an escaper that looks at one byte after the other, and to
// encoding/json where that has an opinion.
func check(t *testing.T, s string) {
	got := string(jsonstring.Append(nil, s))
	if want := plain(s); got != want {
		t.Fatalf("Append(%q) = %s, want %s", s, got, want)
	}
	if b := jsonstring.Append([]byte("x"), []byte(s)); string(b) != "x"+got {
		t.Fatalf("%q is %s as a string and %s as bytes behind an x", s, got, b)
	}
	if n := jsonstring.Len(s); n != len(got) {
		t.Fatalf("Len(%q) = %d, want %d", s, n, len(got))
	}
	// Wherever it is cut, in the middle of a character too.
	half := len(s) / 2
	inside := jsonstring.AppendInside(jsonstring.AppendInside(nil, s[:half]), []byte(s[half:]))
	if string(inside) != got[1:len(got)-1] {
		t.Fatalf("%q in two pieces is %s, want %s", s, inside, got)
	}
	if n := jsonstring.LenInside([]byte(s)); n != len(inside) {
		t.Fatalf("LenInside(%q) = %d, want %d", s, n, len(inside))
	}
	if !utf8.ValidString(s) {
		return
	}
	var back string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back != s {
		t.Fatalf("%q is written %s and read as %q, %v", s, got, back, err)
	}
	if strings.ContainsAny(s, "\u2028\u2029") {
		return // encoding/json escapes them always
	}
	var theirs strings.Builder
	e := json.NewEncoder(&theirs)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil || theirs.String() != got+"\n" {
		t.Fatalf("%q is %s, and %s to encoding/json, %v", s, got, theirs.String(), err)
	}
}

// plain is the rule without the speed.
func plain(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case strings.IndexByte("\b\f\n\r\t", c) >= 0:
			b.WriteString(`\` + "bfnrt"[strings.IndexByte("\b\f\n\r\t", c):][:1])
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func BenchmarkAppend(b *testing.B) {
	base64 := strings.Repeat("aGVsbG8h", 8<<10)
	for _, in := range []struct{ name, s string }{
		{"short", "stripe"},
		{"id", "0198c8b2-0000-7000-8000-000000000001"},
		{"base64", base64},
		{"message", strings.Repeat(`{"v":1,"id":"01a","source_id":"stripe","tenant_id":null}`, 20)},
	} {
		b.Run(fmt.Sprintf("text=%s/bytes=%d", in.name, len(in.s)), func(b *testing.B) {
			buf := make([]byte, 0, jsonstring.Len(in.s))
			b.SetBytes(int64(len(in.s)))
			b.ReportAllocs()
			for b.Loop() {
				buf = jsonstring.Append(buf[:0], in.s)
			}
		})
	}
}

func BenchmarkLen(b *testing.B) {
	for _, size := range []int{8, 1 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := strings.Repeat("aGVsbG8h", size/8)
			b.SetBytes(int64(size))
			for b.Loop() {
				jsonstring.Len(s)
			}
		})
	}
}
