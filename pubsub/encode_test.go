package pubsub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// shape is a request as an independent decoder reads it.
type shape struct {
	Messages []struct {
		Data        []byte            `json:"data"`
		Attributes  map[string]string `json:"attributes"`
		OrderingKey string            `json:"orderingKey"`
	} `json:"messages"`
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRequestBodyIsGolden(t *testing.T) {
	msgs := []Message{
		{Data: []byte("hello"), Attributes: []Attribute{{"ankusa_id", "01a0"}, {"content_type", "application/json"}}, OrderingKey: "acme/stripe"},
		{Data: []byte{0x7b, 0xe9, 0x7d}, OrderingKey: "acme/stripe"}, // not UTF-8
		{Attributes: []Attribute{{"q", "a\"b\\c\x00\x1f\b\f\n\r\t<>&/é\u2028\U0001F600\x7f\ufffe"}, {"empty", ""}}, OrderingKey: "acme/stripe"},
		{Data: []byte("only data")},
		{Attributes: []Attribute{{"only", "attribute"}}},
	}
	got := appendRequest(nil, msgs)
	if want := bytes.TrimSuffix(golden(t, "request_body.golden"), []byte("\n")); !bytes.Equal(got, want) {
		t.Errorf("body\n got %s\nwant %s", got, want)
	}
}

// WireSize decides what fits below the limit of the HTTP body, so it has to be exact: one byte too few
// is a 400 for a thousand messages.
func FuzzWireSizeIsTheBodysLength(f *testing.F) {
	f.Add([]byte("hello"), "name", "value", "key", 3)
	f.Add([]byte{}, "\x00\x1f\b\"\\", "é\u2028", "", 1)
	f.Add([]byte{0xff}, "", "", "k\n", 7)
	f.Fuzz(func(t *testing.T, data []byte, name, value, key string, n int) {
		for _, s := range []string{name, value, key} {
			if !utf8.ValidString(s) {
				t.Skip() // ValidateAttributes refuses it
			}
		}
		n = 1 + (n&0x7fffffff)%5
		sum := requestOverhead
		var msgs []Message
		for i := range n {
			m := Message{Data: data, OrderingKey: key}
			for j := range i {
				m.Attributes = append(m.Attributes, Attribute{fmt.Sprint(name, j), value})
			}
			if i%2 == 1 {
				m.Data = nil
			}
			msgs = append(msgs, m)
			sum += m.WireSize()
		}
		body := appendRequest(nil, msgs)
		if len(body) != sum || bodySize(msgs) != sum {
			t.Fatalf("body of %d bytes, WireSize says %d, bodySize %d: %s", len(body), sum, bodySize(msgs), body)
		}
		var got shape
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("no JSON: %v: %q", err, body)
		}
		if len(got.Messages) != n {
			t.Fatalf("%d messages, want %d", len(got.Messages), n)
		}
		for i, m := range got.Messages {
			want := msgs[i]
			if !bytes.Equal(m.Data, want.Data) || m.OrderingKey != want.OrderingKey || len(m.Attributes) != len(want.Attributes) {
				t.Fatalf("message %d came back as %+v, want %+v", i, m, want)
			}
			for _, a := range want.Attributes {
				if got, ok := m.Attributes[a.Name]; !ok || got != a.Value {
					t.Fatalf("attribute %q = %q, want %q", a.Name, got, a.Value)
				}
			}
		}
	})
}

func TestSizeCountsWhatPubSubCounts(t *testing.T) {
	m := Message{Data: make([]byte, 10), Attributes: []Attribute{{"äb", "cde"}, {"f", ""}}, OrderingKey: "ghi"}
	if got, want := m.Size(), 10+3+3+1+3; got != want {
		t.Errorf("Size = %d, want %d", got, want)
	}
	size, wire := SizeFor(10, m.Attributes, m.OrderingKey)
	if size != m.Size() || wire != m.WireSize() {
		t.Errorf("SizeFor = %d, %d, want %d, %d", size, wire, m.Size(), m.WireSize())
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, bytes := range []int{1 << 10, 4 << 10} {
		b.Run(fmt.Sprintf("messages=1000/bytes=%d", bytes), func(b *testing.B) {
			msgs := hooks(1000, bytes)
			b.ReportAllocs()
			b.SetBytes(int64(bodySize(msgs)))
			for b.Loop() {
				buf := takeBuffer(bodySize(msgs))
				*buf = appendRequest((*buf)[:0], msgs)
				giveBuffer(buf)
			}
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// hooks are messages as the output makes them.
func hooks(n, bytes int) []Message {
	msgs := make([]Message, n)
	data := []byte(strings.Repeat("x", bytes))
	for i := range msgs {
		id := fmt.Sprintf("0198c8b2-0000-7000-8000-%012d", i)
		msgs[i] = Message{Data: data, Attributes: []Attribute{
			{"ankusa_id", id}, {"ankusa_source_id", "stripe"}, {"ankusa_tenant_id", "acme"},
			{"ankusa_message_version", "1"}, {"ankusa_idempotency_key", id}, {"content_type", "application/json"},
		}}
	}
	return msgs
}
