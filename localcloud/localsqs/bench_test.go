package localsqs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// How much of a throughput test the double itself costs: one batch, without the network.
func BenchmarkSendMessageBatch(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("entries=10/bytes=%d", size), func(b *testing.B) {
			s := New(Options{AnySigner: true, AutoCreate: true, DiscardBodies: true})
			var entries []m
			for i := range 10 {
				entries = append(entries, m{"Id": fmt.Sprint(i), "MessageBody": strings.Repeat("x", size), "MessageAttributes": m{"a": str("v"), "b": str("w")}})
			}
			var d strings.Builder
			d.Write(encode(m{"QueueUrl": standard, "Entries": entries}))
			b.SetBytes(int64(d.Len()))
			n := 0
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "http://x/", strings.NewReader(d.String()))
				r.Header.Set("Content-Type", contentType)
				r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessageBatch")
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, r); w.Code != 200 {
					b.Fatal(w.Body)
				}
				if n++; n%1000 == 0 {
					s.Reset()
				}
			}
			b.ReportMetric(float64(10*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
