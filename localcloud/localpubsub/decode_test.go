package localpubsub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// Data is any bytes, and text is what was written, never U+FFFD for something else.
func TestPublishRequestIsReadExactly(t *testing.T) {
	body := `{"messages":[` +
		`{"data":"/wD+","attributes":{"n\u00e9":"v\u0000\ud83d\ude00","m":"\ufffe\"\\\/\b\f\n\r\t"},"orderingKey":"k"},` +
		`{"data":"_wD-","orderingKey":"k"},` +
		`{"attributes":{"m":""},"orderingKey":"k"}]}`
	msgs, err := decodePublish([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := []StoredMessage{
		{Data: []byte{0xff, 0, 0xfe}, Attributes: map[string]string{"né": "v\x00😀", "m": "\ufffe\"\\/\b\f\n\r\t"}, OrderingKey: "k"},
		{Data: []byte{0xff, 0, 0xfe}, OrderingKey: "k", Index: 1},
		{Attributes: map[string]string{"m": ""}, OrderingKey: "k", Index: 2},
	}
	for i, w := range want {
		if !reflect.DeepEqual(*msgs[i], w) {
			t.Errorf("message %d = %+v, want %+v", i, *msgs[i], w)
		}
	}
	if got := msgs[0].Size(); got != 3+len("né")+6+1+11+1 {
		t.Errorf("size %d: bytes of data, names, values and key count", got)
	}
	if cap(msgs[0].Data) > 8 {
		t.Errorf("three bytes of data hold %d", cap(msgs[0].Data))
	}
}

// What is stored must not refer to the request's buffer, which is used again.
func TestDecodedMessagesOutliveTheirRequest(t *testing.T) {
	body := []byte(`{"messages":[{"data":"aGVsbG8=","attributes":{"name":"value"},"orderingKey":"key"}]}`)
	msgs, err := decodePublish(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got := fmt.Sprintf("%s %v %s", msgs[0].Data, msgs[0].Attributes, msgs[0].OrderingKey); got != "hello map[name:value] key" {
		t.Errorf("after the buffer changed: %q", got)
	}
}

// An operator finds the culprit by the text, so the text is Google's.
func TestRefusalsNameTheField(t *testing.T) {
	for _, c := range []struct{ body, text string }{
		{`{"messages":[{"data":"YQ=="},{"bogus":1}]}`, `Invalid JSON payload received. Unknown name "bogus" at 'messages[1]': Cannot find field.`},
		{`{"topic":"projects/p/topics/other","messages":[]}`, `Invalid JSON payload received. Unknown name "topic": Cannot find field.`},
		{`{"messages":[{"data":7}]}`, `Invalid value at 'messages[0].data' (TYPE_BYTES)`},
		{`{"messages":[{"orderingKey":false}]}`, `Invalid value at 'messages[0].ordering_key' (TYPE_STRING)`},
		{"{\"messages\":[{\"orderingKey\":\"\xff\"}]}", `Invalid JSON payload received. Encountered non UTF-8 code points.`},
		{`{"messages":[{"attributes":{"a":"1","a":"2"}}]}`, `Repeated map key: "a" is already set.`},
	} {
		_, err := decodePublish([]byte(c.body))
		if err == nil || err.status != "INVALID_ARGUMENT" || !strings.Contains(err.message, c.text) {
			t.Errorf("%s: %v, want %q", c.body, err, c.text)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	for _, c := range []struct {
		depth int
		good  bool
	}{{maxDepth, true}, {maxDepth + 2, false}, {1_000_000, false}} {
		body := `{"labels":` + strings.Repeat("[", c.depth) + strings.Repeat("]", c.depth) + `}`
		if _, err := readFields([]byte(body), "labels"); (err == nil) != c.good {
			t.Errorf("%d levels: %v", c.depth, err)
		}
	}
}

// The decoder against the standard one: what it takes is JSON, and means the same there.
func FuzzDecodePublish(f *testing.F) {
	for _, c := range publishCases {
		if len(c.body) < 4096 {
			f.Add([]byte(c.body))
		}
	}
	f.Add([]byte(`{"messages":[{"data":"AAAA====","attributes":{"a":"\ud800\u0041"}}]}`))
	f.Add([]byte(`{"messages":[{"publishTime":"x","message_id":"y"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		input := bytes.Clone(body)
		msgs, err := decodePublish(body)
		if !bytes.Equal(input, body) {
			t.Fatal("the decoder changed its input")
		}
		if err != nil {
			if err.status != "INVALID_ARGUMENT" || !utf8.ValidString(err.message) {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		if !utf8.Valid(body) || !json.Valid(body) {
			t.Fatalf("took %q, which is no JSON", body)
		}
		var doc struct {
			Messages []struct {
				Data                      *string
				Attributes                map[string]string
				OrderingKey, Ordering_key *string
			}
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("took %q, the standard decoder says %v", body, err)
		}
		if len(msgs) != len(doc.Messages) {
			t.Fatalf("%q: %d messages, want %d", body, len(msgs), len(doc.Messages))
		}
		for i, m := range msgs {
			w := doc.Messages[i]
			key := ""
			for _, k := range []*string{w.OrderingKey, w.Ordering_key} {
				if k != nil {
					key = *k
				}
			}
			if m.OrderingKey != key || len(m.Attributes) != len(w.Attributes) {
				t.Fatalf("%q: message %d is %+v", body, i, m)
			}
			for name, value := range w.Attributes {
				if got, ok := m.Attributes[name]; !ok || got != value {
					t.Fatalf("%q: attribute %q is %q, want %q", body, name, got, value)
				}
			}
			if w.Data == nil {
				continue
			}
			standard := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(*w.Data), "=")
			data, err := base64.RawStdEncoding.DecodeString(standard)
			if err != nil || !bytes.Equal(data, m.Data) {
				t.Fatalf("%q: data %q is %q, want %q (%v)", body, *w.Data, m.Data, data, err)
			}
		}
	})
}

func FuzzReadFields(f *testing.F) {
	f.Add([]byte(`{"maxMessages":10,"return_immediately":true}`))
	f.Add([]byte(`{"maxMessages":-1.5e+3,"labels":{"a":[null,{}]}} `))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readFields(body, "maxMessages", "returnImmediately", "labels", "?filter")
		if err == nil && len(bytes.TrimSpace(body)) > 0 && !json.Valid(body) {
			t.Fatalf("took %q, which is no JSON", body)
		}
		for name, text := range got {
			if !json.Valid(text) {
				t.Fatalf("%q: member %s is %q", body, name, text)
			}
		}
	})
}

func BenchmarkDecodePublish(b *testing.B) {
	for _, c := range []struct{ messages, size int }{{1000, 512}, {1000, 4096}, {1, 7_000_000}} {
		b.Run(fmt.Sprintf("messages=%d/bytes=%d", c.messages, c.size), func(b *testing.B) {
			m := testMessage{Data: bytes.Repeat([]byte("x"), c.size), OrderingKey: "acme/stripe", Attributes: map[string]string{
				"ankusa_id": "01a0", "ankusa_source_id": "stripe", "ankusa_tenant_id": "acme", "ankusa_message_version": "1",
				"ankusa_idempotency_key": "acme:stripe:evt_1", "content_type": "application/json", "ankusa_dedupe_key": "evt_1",
			}}
			msgs := make([]testMessage, c.messages)
			for i := range msgs {
				msgs[i] = m
			}
			body := []byte(publishBody(msgs...))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodePublish(body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.messages*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
