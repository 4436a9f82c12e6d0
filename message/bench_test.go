package message

import (
	"fmt"
	"maps"
	"testing"
)

// sizes are those of bodies: an ordinary hook's, and the longest that travels inline by default.
var sizes = []int{1 << 10, DefaultInlineMaxBytes}

// benchHook is a hook as they come: a dozen headers of which most need no escape.
func benchHook(size int) *Hook {
	return &Hook{
		ID: "0194c8f0-7b1e-7c3a-9f00-0123456789ab", SourceID: "github", TenantID: "acme", ReceivedAt: 1737500000000,
		ContentType: "application/json", DedupeKey: "72d3162e-cc78-11e3-81ab-4c9367dc0958", Body: pattern(size),
		Headers: map[string]string{
			"accept": "*/*", "accept-encoding": "gzip", "user-agent": "GitHub-Hookshot/044aadd", "x-forwarded-for": "192.0.2.1",
			"x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "x-github-event": "push", "x-github-hook-id": "292430182",
			"x-github-hook-installation-target-id": "79929171", "x-github-hook-installation-target-type": "repository",
			"x-hub-signature": "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6", "x-request-id": "\"quoted\"",
			"x-hub-signature-256": "sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c",
		},
	}
}

func BenchmarkAppendTo(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			h := benchHook(size)
			buf := make([]byte, 0, h.Size())
			b.SetBytes(int64(h.Size()))
			b.ReportAllocs()
			for b.Loop() {
				buf = h.AppendTo(buf[:0])
			}
		})
	}
}

func BenchmarkSize(b *testing.B) {
	h := benchHook(1 << 10)
	b.ReportAllocs()
	for b.Loop() {
		h.Size()
	}
}

func BenchmarkValidate(b *testing.B) {
	h := benchHook(1 << 10)
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			raw := benchHook(size).AppendTo(nil)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSelect(b *testing.B) {
	meta := maps.All(map[string]string{
		"X-Github-Event": "push", "User-Agent": "GitHub-Hookshot/044aadd", "Content-Type": "application/json", "X-Request-Id": "1",
		"http_server_verb": "POST", "http_server_request_path": "/hooks", "http_server_user_agent": "GitHub-Hookshot/044aadd", "id": "7",
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ForwardDefault().Select(meta); err != nil {
			b.Fatal(err)
		}
	}
}
