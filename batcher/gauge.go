package batcher

import (
	"math"
	"sync"
	"sync/atomic"
)

// A gauge knows whether anyone is left who could add to a request: it counts the Submit calls that
// have all their entries admitted, in all their queues, and await results.
//
// It is read as a level, each time a request might leave, and not fired as an event: what becomes
// sendable while nobody is left, such as a group whose request is back, leaves at once too. Only the
// queues that had something to send before it became full have to be told.
type gauge[T any] struct {
	max      int64 // 0: not known
	awaiting atomic.Int64
	open     atomic.Int64 // queues that share the calls

	mu     sync.Mutex       // taken under a Batcher's lock, never before it
	queues ring[Batcher[T]] // that linger, to be nudged
}

func (g *gauge[T]) full() bool { return g.max > 0 && g.awaiting.Load() >= g.max }

// enter counts a call in, and reports whether nobody is left now.
func (g *gauge[T]) enter() bool { return g.awaiting.Add(1) >= g.max && g.max > 0 }

func (g *gauge[T]) leave() { g.awaiting.Add(-1) }

// share is how many calls may wait in a queue while the service asks it to wait for too long: half of
// those there can be, so that the other queues keep the rest, and any number where there are none.
//
// They are not refused altogether, because whoever reads what is nacked may deliver it again at once,
// and then do nothing else.
func (g *gauge[T]) share() int {
	if g.max == 0 || g.open.Load() < 2 {
		return math.MaxInt
	}
	return int(g.max / 2)
}

// list adds a queue to those that flush nudges, once each, and reports whether it was not among them.
func (g *gauge[T]) list(n *node[Batcher[T]]) bool {
	if g.max == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n.linked() {
		return false
	}
	g.queues.push(n)
	return true
}

// forget takes a queue that is dropped off the list.
func (g *gauge[T]) forget(n *node[Batcher[T]]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n.linked() {
		g.queues.remove(n)
	}
}

// flush makes every queue look that lingers, but by, which has looked: it filled the gauge. It must
// be called without a lock: what one admits then may fill the gauge again.
func (g *gauge[T]) flush(by *Batcher[T]) {
	g.mu.Lock()
	n := g.queues.len // a queue that has looked and lingers on lists itself again
	g.mu.Unlock()
	for range n {
		g.mu.Lock()
		b := g.queues.front()
		if b != nil {
			g.queues.remove(&b.inGauge)
		}
		g.mu.Unlock()
		if b == nil {
			return // another flush has nudged it
		}
		if b != by {
			b.nudge()
		}
	}
}
