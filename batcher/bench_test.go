package batcher

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

// BenchmarkSubmit measures the scheduling alone: the SendFunc takes everything at once. 64 callers,
// as an output with max_in_flight has, submit ten entries each.
func BenchmarkSubmit(b *testing.B) {
	for _, tenants := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			benchmarkSubmit(b, 10, func(n int) (string, string) { return fmt.Sprint("t", n%tenants), "" })
		})
	}
	for _, groups := range []int{1, 64} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			benchmarkSubmit(b, 10, func(n int) (string, string) { return "t", fmt.Sprint("g", n%groups) })
		})
	}
}

// BenchmarkSubmitOpenQueues has one caller, so that each Submit fills the gauge, and queues that are
// open and have nothing to send.
func BenchmarkSubmitOpenQueues(b *testing.B) {
	for _, open := range []int{1, 1000, 20000} {
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			send := func(_ context.Context, _ string, values []int) []error { return make([]error, len(values)) }
			s, err := NewSet(send, Options{MaxEntries: 10, MaxInFlight: 1, IdleTimeout: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			one := []Entry[int]{{Queue: "0", Size: 500}}
			for i := range open {
				one[0].Queue = strconv.Itoa(i)
				s.Submit(context.Background(), one)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if err := s.Submit(context.Background(), one)[0]; err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msgs/s")
			if err := s.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSubmitLarge is one caller that submits a thousand entries of 64 tenants at a time.
func BenchmarkSubmitLarge(b *testing.B) {
	benchmark(b, 1, 1000, func(n int) (string, string) { return fmt.Sprint("t", n%64), "" })
}

func benchmarkSubmit(b *testing.B, size int, who func(n int) (tenant, group string)) {
	benchmark(b, 64, size, who)
}

func benchmark(b *testing.B, callers, size int, who func(n int) (tenant, group string)) {
	none := make([]error, 10)
	send := func(_ context.Context, _ string, values []int) []error { return none[:len(values)] }
	s, err := NewSet(send, Options{MaxEntries: 10, MaxBytes: 262144, MaxInFlight: callers})
	if err != nil {
		b.Fatal(err)
	}
	batches := make([][]Entry[int], callers)
	for i := range batches {
		for j := range size {
			tenant, group := who(i*size + j)
			batches[i] = append(batches[i], Entry[int]{Queue: "q", Tenant: tenant, Group: group, Size: 500})
		}
	}
	b.ReportAllocs()
	work := make(chan struct{}, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range work {
				for _, err := range s.Submit(context.Background(), batches[i]) {
					if err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	n := 0
	for b.Loop() {
		work <- struct{}{}
		n += size
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msgs/s")
	if err := s.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
