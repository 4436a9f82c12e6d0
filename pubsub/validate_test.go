package pubsub

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

func TestValidateRefusesWhatTheServiceWould(t *testing.T) {
	attr := func(name, value string) Message {
		return Message{Data: []byte("x"), Attributes: []Attribute{{name, value}}}
	}
	many := func(n int) (m Message) {
		for i := range n {
			m.Attributes = append(m.Attributes, Attribute{fmt.Sprint("a", i), "v"})
		}
		return m
	}
	tests := []struct {
		name string
		m    Message
		code string // empty: sound
		text string // in the error
	}{
		{"any bytes are data", Message{Data: []byte{0xff, 0x00}}, "", ""},
		{"attributes without data", many(100), "", ""},
		{"nothing at all", Message{OrderingKey: "k"}, "invalid_field", "data is empty"},
		{"101 attributes", many(101), "invalid_field", "number 101, at most 100"},
		{"name of 256 bytes", attr(strings.Repeat("n", 256), "v"), "", ""},
		{"name of 257 bytes", attr(strings.Repeat("n", 257), "v"), "invalid_field", "257 bytes, at most 256"},
		{"name of 129 two-byte letters: bytes decide", attr(strings.Repeat("é", 129), "v"), "invalid_field", "258 bytes"},
		{"no name", attr("", "v"), "invalid_field", "empty name"},
		{"reserved name", attr("googclient", "v"), "invalid_field", "attributes.googclient begins with goog"},
		{"reserved only at the start", attr("agoog", "v"), "", ""},
		{"value of 1024 bytes", attr("n", strings.Repeat("v", 1024)), "", ""},
		{"value of 1025 bytes", attr("n", strings.Repeat("v", 1025)), "invalid_field", "attributes.n is 1025 bytes, at most 1024"},
		{"empty value", attr("n", ""), "", ""},
		{"value not UTF-8", attr("ankusa_dedupe_key", "a\xc5z"), "invalid_field", "attributes.ankusa_dedupe_key is not valid UTF-8"},
		{"name not UTF-8", attr("a\xc5", "v"), "invalid_field", "not valid UTF-8"},
		{"a percent sign in a name is no format", attr("100%d", "\xff"), "invalid_field", "attributes.100%d is not"},
		{"same name twice", Message{Attributes: []Attribute{{"a", "1"}, {"b", "2"}, {"a", "3"}}}, "invalid_field", "attributes.a is given twice"},
		{"control characters travel", attr("n", "\x00\x1f\ufffe"), "", ""},
		{"key of 1024 bytes", Message{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1024)}, "", ""},
		{"key of 1025 bytes", Message{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)}, "invalid_field", "ordering_key is 1025 bytes"},
		{"key not UTF-8", Message{Data: []byte("x"), OrderingKey: "\xc5"}, "invalid_field", "ordering_key is not valid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkPermanent(t, tt.m.Validate(0), tt.code, tt.text)
		})
	}
}

func checkPermanent(t *testing.T, err error, code, text string) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Errorf("got %v, want nil", err)
		}
		return
	}
	e := classify.Of(err)
	if e == nil || e.Class != classify.Permanent || e.Code != code || !strings.Contains(e.Error(), text) {
		t.Errorf("got %v, want permanent %s … %s", err, code, text)
	}
	if strings.ContainsRune(err.Error(), '\ufffd') {
		t.Errorf("U+FFFD in %q", err)
	}
}

func TestValidateSizeBoundaries(t *testing.T) {
	// What base64 makes of n bytes of data alone.
	wireOf := func(n int) int { _, w := SizeFor(n, nil, ""); return w }
	largest := 0
	for n := 7_864_000; wireOf(n) <= MaxWireBytes; n++ {
		largest = n
	}
	tests := []struct {
		name       string
		data, most int
		code, text string
	}{
		{"exactly the configured limit", 1000, 1000, "", ""},
		{"one more", 1001, 1000, "message_too_large", "1001 bytes, limit 1000"},
		{"the largest that REST carries", largest, 0, "", ""},
		{"one more than REST carries", largest + 1, 0, "message_too_large", "reads at most 10485760: configure claim_check.store"},
		{"8,000,000 bytes are legal by gRPC only", 8_000_000, 0, "message_too_large", "claim"},
		{"above Pub/Sub's own limit", 10_000_001, 0, "message_too_large", "limit 10000000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			size, wire := SizeFor(tt.data, nil, "")
			checkPermanent(t, ValidateSize(size, wire, tt.most), tt.code, tt.text)
		})
	}
	if got := wireOf(largest) + requestOverhead; got > MaxBodyBytes || got < MaxBodyBytes-4 {
		t.Errorf("the largest body is %d bytes, want just below %d", got, MaxBodyBytes)
	}
}

func TestCheckTopic(t *testing.T) {
	tests := []struct{ topic, code, text string }{
		{"hooks", "", ""},
		{"us.example%2Fa-b_c~d+e", "", ""},
		{strings.Repeat("t", 255), "", ""},
		{strings.Repeat("t", 256), "invalid_field", "256 bytes"},
		{"", "invalid_field", "topic is empty"},
		{"projects/acme/topics/hooks", "invalid_field", `give the short name "hooks" as topic and "acme" as project`},
		{"projects/acme", "invalid_field", "full resource name"},
		{"a/b", "invalid_field", "may hold only"},
		{"a:b", "invalid_field", "may hold only"},
		{"a b", "invalid_field", "may hold only"},
		{"..", "invalid_field", "path"},
		{"tö", "invalid_field", "may hold only"},
		{"a\xff%s", "invalid_field", "may hold only"},
	}
	for _, tt := range tests {
		t.Run(tt.topic, func(t *testing.T) { checkPermanent(t, CheckTopic(tt.topic), tt.code, tt.text) })
	}
}

func TestCheckProject(t *testing.T) {
	for project, sound := range map[string]bool{
		"my-project-123": true, "example.com:name": true, "123456789": true, "p": true,
		"": false, "a/b": false, "..": false, "a b": false, "ä": false, "a?b": false, "a\xff": false,
	} {
		err := CheckProject(project)
		if sound != (err == nil) {
			t.Errorf("CheckProject(%q) = %v, want sound: %v", project, err, sound)
		}
		if err != nil && classify.Of(err).Class != classify.Config {
			t.Errorf("CheckProject(%q) = %v, want a config error", project, err)
		}
	}
}
