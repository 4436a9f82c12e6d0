package localpubsub

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

func TestPublishedIsInOrder(t *testing.T) {
	clock := newClock()
	p := newTopic(t, Options{Now: clock.now}, TopicOptions{})
	c := serve(t, p)
	first := messageIDs(t, c.publish(t, "hooks", publishBody(texts("k", "a", "b")...)))
	clock.advance(time.Second)
	second := messageIDs(t, c.publish(t, "hooks", publishBody(testMessage{Attributes: map[string]string{"n": "v"}})))
	got := p.Published("hooks")
	ids := append(first, second...)
	want := []StoredMessage{
		{MessageID: ids[0], Data: []byte("a"), OrderingKey: "k", PublishTime: clock.t.Add(-time.Second), Request: 1},
		{MessageID: ids[1], Data: []byte("b"), OrderingKey: "k", PublishTime: clock.t.Add(-time.Second), Request: 1, Index: 1},
		{MessageID: ids[2], Attributes: map[string]string{"n": "v"}, PublishTime: clock.t, Request: 2},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	s := p.Stats("hooks")
	if s.Requests != 2 || s.Accepted != 2 || s.Messages != 3 || s.Bytes != 2+2+2 || s.Keys != 1 || s.EntriesPerRequest() != 1.5 ||
		fmt.Sprint(s.Sizes) != "map[1:1 2:1]" || len(s.Refused) != 0 {
		t.Errorf("stats %+v", s)
	}
	p.Reset()
	if s := p.Stats("hooks"); s.Requests != 0 || s.Messages != 0 || len(p.Published("hooks")) != 0 || len(p.RequestLog("hooks")) != 0 {
		t.Errorf("after Reset: %+v", s)
	}
	if s := p.Stats("nowhere"); s.Requests != 0 {
		t.Errorf("stats of no topic: %+v", s)
	}
}

// The numbers a benchmark of a scheduler lives by: exact in a bubble.
func TestInFlightIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTopic(t, Options{Latency: func(*localcloud.Call) time.Duration { return 2 * time.Second }}, TopicOptions{})
		c, stop := piped(p)
		defer stop()
		var wg sync.WaitGroup
		post := func(key string, after time.Duration) {
			wg.Go(func() {
				time.Sleep(after)
				c.publish(t, "hooks", publishBody(texts(key, "x")...))
			})
		}
		post("a", 0)                     // 0…2
		post("b", time.Second)           // 1…3
		post("b", 1500*time.Millisecond) // 1.5…3.5
		post("", 10*time.Second)         // 10…12
		wg.Wait()
		s := p.Stats("hooks")
		// 8 request-seconds over the 5.5 s in which one was in flight.
		if s.MaxInFlight != 3 || s.AverageInFlight != 8/5.5 || s.MaxInFlightPerKey != 2 || s.BusiestKey != "b" || s.Keys != 2 {
			t.Errorf("stats %+v", s)
		}
		log := p.RequestLog("hooks")
		if len(log) != 4 || log[3].OrderingKey != "" || log[3].Arrived.Sub(log[0].Arrived) != 10*time.Second {
			t.Errorf("log %+v", log)
		}
	})
}

// A client that has its answer may send the next request of the key at once; the one that was
// answered must not count as in flight then.
func TestAnsweredRequestIsNotInFlight(t *testing.T) {
	p := newTopic(t, Options{}, TopicOptions{})
	c := serve(t, p)
	for range 200 {
		c.publish(t, "hooks", publishBody(texts("k", "x")...))
	}
	if s := p.Stats("hooks"); s.MaxInFlight != 1 || s.MaxInFlightPerKey != 1 {
		t.Errorf("one at a time gave %d in flight, %d of a key", s.MaxInFlight, s.MaxInFlightPerKey)
	}
}

// A client that goes while the request waits has not published.
func TestLatencyEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTopic(t, Options{Latency: func(*localcloud.Call) time.Duration { return time.Hour }}, TopicOptions{})
		c, stop := piped(p)
		defer stop()
		c.client.Timeout = time.Second
		if a, err := c.do(t.Context(), "POST", "/topics/hooks:publish", publishBody(texts("", "x")...)); err == nil {
			t.Errorf("got %v", a)
		}
		synctest.Wait()
		if s := p.Stats("hooks"); s.Requests != 1 || s.Messages != 0 || s.MaxInFlight != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestDiscardDataCountsOnly(t *testing.T) {
	p := newTopic(t, Options{DiscardData: true}, TopicOptions{})
	c := serve(t, p)
	c.publish(t, "hooks", publishBody(texts("k", "a", "b")...))
	if s := p.Stats("hooks"); s.Messages != 2 || s.Keys != 1 || len(p.Published("hooks")) != 0 || len(p.RequestLog("hooks")) != 0 {
		t.Errorf("stats %+v, %d kept", s, len(p.Published("hooks")))
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			p := newTopic(b, Options{DiscardData: true}, TopicOptions{})
			c := serve(b, p)
			msgs := make([]testMessage, n)
			for i := range msgs {
				msgs[i] = testMessage{Data: make([]byte, 1024), Attributes: attributes(7)}
			}
			body := publishBody(msgs...)
			b.ReportAllocs()
			for b.Loop() {
				if a, err := c.do(b.Context(), "POST", "/topics/hooks:publish", body); err != nil || a.status != 200 {
					b.Fatal(a, err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
