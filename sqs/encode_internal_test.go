package sqs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendStringEscapesOnlyWhatJSONNeeds(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", `""`}, {"abc", `"abc"`}, {`"`, `"\""`}, {`\`, `"\\"`}, {"\t\n\r", `"\t\n\r"`},
		{"<>&/", `"<>&/"`}, {"é\u2028😀\u007f", "\"é\u2028😀\u007f\""}, {"\x00\x1f", `"\u0000\u001f"`},
		{`1234567"`, `"1234567\""`}, {`12345678"`, `"12345678\""`}, {`"12345678`, `"\"12345678"`},
	} {
		if got := string(appendString(nil, tc.in)); got != tc.want {
			t.Errorf("appendString(%q) = %s, want %s", tc.in, got, tc.want)
		}
		if got := string(appendBytes(nil, []byte(tc.in))); got != tc.want {
			t.Errorf("appendBytes(%q) = %s, want %s", tc.in, got, tc.want)
		}
	}
}

// Every byte at every place of the eight that are looked at together, beside every kind of neighbour.
func TestAppendBytesAtEveryOffset(t *testing.T) {
	for c := range 128 {
		for at := range 17 {
			for _, fill := range []byte{'a', '"', '\\', '!', '#', ' ', '[', ']', 0x7f, '\t'} {
				s := bytes.Repeat([]byte{fill}, 17)
				s[at] = byte(c)
				var back string
				if err := json.Unmarshal(appendBytes(nil, s), &back); err != nil || back != string(s) {
					t.Fatalf("%q comes back as %q, %v", s, back, err)
				}
			}
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain \"and\" \\ \t é 😀")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		var back string
		if err := json.Unmarshal(appendString(nil, s), &back); err != nil || back != s {
			t.Fatalf("%q comes back as %q, %v", s, back, err)
		}
		if a, b := appendString(nil, s), appendBytes(nil, []byte(s)); !bytes.Equal(a, b) {
			t.Fatalf("%q is %s as a string and %s as bytes", s, a, b)
		}
	})
}

func TestSizeHintIsEnough(t *testing.T) {
	entries := hooks(10, 1024)
	pick := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	got := len(appendBatch(nil, "https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo", true, entries, pick))
	if hint := sizeHint(entries, pick); got > hint || hint > got*2 {
		t.Errorf("the hint is %d for a request of %d bytes", hint, got)
	}
}

// hooks are entries as the outputs make them: mostly base64, with the quotes of their JSON.
func hooks(n, size int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		body := fmt.Sprintf(`{"v":1,"id":"01a%d","source_id":"stripe","tenant_id":"acme","received_at":1737500000000,"content_type":"application/json","size":5,"dedupe_key":null,"replay_id":null,"idempotency_key":"01a0","headers":{},"sha256":"2cf24d","body_base64":"%s"}`, i, strings.Repeat("aGVsbG8h", size/8))
		entries[i] = Entry{
			Body: []byte(body), GroupID: "acme/stripe", DeduplicationID: fmt.Sprint("01a", i),
			Attributes: []Attribute{
				{"ankusa_id", fmt.Sprint("01a", i)}, {"ankusa_source_id", "stripe"}, {"ankusa_tenant_id", "acme"},
				{"ankusa_message_version", "1"}, {"ankusa_idempotency_key", "acme:stripe:evt_1"}, {"content_type", "application/json"},
			},
		}
	}
	return entries
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("entries=10/bytes=%d", size), func(b *testing.B) {
			entries := hooks(10, size)
			pick := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
			var buf []byte
			n := 0
			for i := range entries {
				n += len(entries[i].Body)
			}
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				buf = appendBatch(buf[:0], "https://sqs.us-east-1.amazonaws.com/123456789012/hooks.fifo", true, entries, pick)
			}
			b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}
