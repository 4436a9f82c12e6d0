package localpubsub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a service clock that a test sets.
type clock struct{ t time.Time }

func newClock() *clock                   { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }
func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

// fixture is a topic with a subscription, used from the Go side.
func fixture(t *testing.T, o SubscriptionOptions) (*PubSub, *clock) {
	t.Helper()
	c := newClock()
	p := newTopic(t, Options{Now: c.now}, TopicOptions{})
	if err := p.CreateSubscription("sub", "hooks", o); err != nil {
		t.Fatal(err)
	}
	return p, c
}

func (p *PubSub) mustStore(t *testing.T, msgs ...testMessage) {
	t.Helper()
	if a := serve(t, p).publish(t, "hooks", publishBody(msgs...)); a.status != 200 {
		t.Fatal(a)
	}
}

// take pulls up to n and returns the data and the ack ids.
func take(t *testing.T, p *PubSub, n int) (got string, acks []string) {
	t.Helper()
	msgs, err := p.Pull("sub", n)
	if err != nil {
		t.Fatal(err)
	}
	d := []string{}
	for _, m := range msgs {
		d, acks = append(d, fmt.Sprintf("%s/%d", m.Message.Data, m.Attempts)), append(acks, m.AckID)
	}
	return strings.Join(d, " "), acks
}

func wantTake(t *testing.T, p *PubSub, n int, want string) []string {
	t.Helper()
	got, acks := take(t, p, n)
	if got != want {
		t.Errorf("pulled %q, want %q", got, want)
	}
	return acks
}

func TestMessageComesBackAtItsDeadline(t *testing.T) {
	p, c := fixture(t, SubscriptionOptions{AckDeadline: 20 * time.Second})
	p.mustStore(t, texts("", "a", "b")...)
	acks := wantTake(t, p, 10, "a/1 b/1")
	if err := p.Acknowledge("sub", acks[1]); err != nil {
		t.Fatal(err)
	}
	c.advance(20*time.Second - 1)
	wantTake(t, p, 10, "")
	c.advance(1)
	again := wantTake(t, p, 10, "a/2")
	// The first delivery's ack id has been replaced.
	if err := p.Acknowledge("sub", acks[0]); err != nil {
		t.Fatal(err)
	}
	c.advance(20 * time.Second)
	again = append(again, wantTake(t, p, 10, "a/3")...)
	if err := p.Acknowledge("sub", again...); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	wantTake(t, p, 10, "")
}

func TestDeadlineCanBeMoved(t *testing.T) {
	p, c := fixture(t, SubscriptionOptions{})
	p.mustStore(t, texts("", "a")...)
	acks := wantTake(t, p, 1, "a/1")
	if err := p.ModifyAckDeadline("sub", time.Minute, acks...); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute - 1)
	wantTake(t, p, 1, "")
	if err := p.ModifyAckDeadline("sub", 0, acks...); err != nil {
		t.Fatal(err)
	}
	wantTake(t, p, 1, "a/2")
	if err := p.ModifyAckDeadline("sub", 0, "bogus"); err == nil {
		t.Error("an ack id that is none: want an error")
	}
}

// Order is the subscription's: a key with a message out waits, others don't, and what comes back
// comes back in order.
func TestOrderedSubscriptionHoldsTheKey(t *testing.T) {
	p, c := fixture(t, SubscriptionOptions{EnableMessageOrdering: true})
	p.mustStore(t, texts("k", "k1", "k2", "k3", "k4")...)
	p.mustStore(t, texts("l", "l1")...)
	p.mustStore(t, texts("", "n1", "n2")...)
	acks := wantTake(t, p, 3, "k1/1 k2/1 k3/1")
	wantTake(t, p, 2, "l1/1 n1/1")
	wantTake(t, p, 10, "n2/1") // no key, no order
	// k1 is done, k2 comes back, so k3 behind it does too.
	if err := p.Acknowledge("sub", acks[0]); err != nil {
		t.Fatal(err)
	}
	wantTake(t, p, 10, "")
	if err := p.ModifyAckDeadline("sub", 0, acks[1]); err != nil {
		t.Fatal(err)
	}
	acks = wantTake(t, p, 2, "k2/2 k3/2")
	wantTake(t, p, 10, "")
	if err := p.Acknowledge("sub", acks...); err != nil {
		t.Fatal(err)
	}
	wantTake(t, p, 10, "k4/1")
	c.advance(DefaultAckDeadline)
	wantTake(t, p, 10, "k4/2 l1/2 n1/2 n2/2")
}

func TestUnorderedSubscriptionDoesNotWait(t *testing.T) {
	p, _ := fixture(t, SubscriptionOptions{})
	p.mustStore(t, texts("k", "k1", "k2")...)
	wantTake(t, p, 1, "k1/1")
	wantTake(t, p, 1, "k2/1")
}

func TestLargeBacklogIsDeliveredOnce(t *testing.T) {
	p, _ := fixture(t, SubscriptionOptions{})
	seen := map[string]int{}
	for range 3 {
		p.mustStore(t, texts("", strings.Fields(strings.Repeat("x ", 1000))...)...)
	}
	for {
		msgs, err := p.Pull("sub", 5000)
		if err != nil {
			t.Fatal(err)
		}
		if len(msgs) == 0 {
			break
		}
		if len(msgs) > MaxPull {
			t.Fatalf("pulled %d at once, want at most %d", len(msgs), MaxPull)
		}
		for _, m := range msgs {
			seen[m.Message.MessageID]++
			if err := p.Acknowledge("sub", m.AckID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != 3000 {
		t.Errorf("%d messages delivered, want 3000", len(seen))
	}
	if got := len(p.subs[p.nameOf("sub", kindSubscription)].backlog); got > 128 {
		t.Errorf("%d acknowledged messages are kept", got)
	}
}

// A pull waits for a message, for an ack deadline, or for its own end; exactly.
func TestPullWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTopic(t, Options{PullWait: time.Minute}, TopicOptions{})
		if err := p.CreateSubscription("sub", "hooks", SubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		c, stop := piped(p)
		defer stop()
		pull := func() (string, time.Duration) {
			start := time.Now()
			a := c.must(t, "POST", "/subscriptions/sub:pull", `{"maxMessages":10}`)
			return string(a.body), time.Since(start)
		}
		if body, took := pull(); took != time.Minute || strings.Contains(body, "data") {
			t.Errorf("an empty subscription: %s after %v, want none after 1m", body, took)
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			time.Sleep(5 * time.Second)
			c.publish(t, "hooks", publishBody(texts("", "x")...))
		})
		if body, took := pull(); took != 5*time.Second || !strings.Contains(body, b64("x")) {
			t.Errorf("published after 5s: %s after %v", body, took)
		}
		if body, took := pull(); took != DefaultAckDeadline || !strings.Contains(body, b64("x")) {
			t.Errorf("not acknowledged: %s after %v, want it again at its deadline", body, took)
		}
	})
}

func TestWaitingPullEndsWithItsClientAndItsSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTopic(t, Options{PullWait: time.Hour}, TopicOptions{})
		if err := p.CreateSubscription("sub", "hooks", SubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		c, stop := piped(p)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a, err := c.do(ctx, "POST", "/subscriptions/sub:pull", `{"maxMessages":1}`); err == nil {
			t.Errorf("a client that went got %v", a)
		}
		synctest.Wait() // the server has noticed
		c.publish(t, "hooks", publishBody(texts("", "x")...))
		wantTake(t, p, 1, "x/1") // nobody has taken it to the grave
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Second)
			c.call(t, "DELETE", "/subscriptions/sub", "")
		})
		if a := c.call(t, "POST", "/subscriptions/sub:pull", `{"maxMessages":1}`); a.code != "NOT_FOUND" {
			t.Errorf("pull from a deleted subscription = %v, want NOT_FOUND", a)
		}
		wg.Wait()
	})
}

func TestEverySubscriptionGetsEveryMessage(t *testing.T) {
	p, _ := fixture(t, SubscriptionOptions{})
	if err := p.CreateSubscription("other", "hooks", SubscriptionOptions{}); err != nil {
		t.Fatal(err)
	}
	p.mustStore(t, texts("", "x")...)
	wantTake(t, p, 1, "x/1")
	msgs, err := p.Pull("other", 1)
	if err != nil || len(msgs) != 1 {
		t.Fatalf("pulled %v, %v", msgs, err)
	}
	if stored := p.Published("hooks")[0]; &stored.Data[0] != &msgs[0].Message.Data[0] {
		t.Error("the data is in memory twice")
	}
	p.Reset()
	wantTake(t, p, 1, "")
}
