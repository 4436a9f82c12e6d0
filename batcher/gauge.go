package batcher

import (
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
	maySit   int   // Submits that may sit out a long pause; negative: any number
	awaiting atomic.Int64

	mu      sync.Mutex       // taken under a Batcher's lock, never before it
	queues  ring[Batcher[T]] // that linger, to be nudged
	sitting int              // Submits that sit out a pause that is longer than they may wait
}

func newGauge[T any](o *Options) *gauge[T] {
	g := &gauge[T]{max: int64(o.MaxInFlight), maySit: -1}
	if o.ManyQueues && o.MaxInFlight > 0 {
		g.maySit = o.MaxInFlight / 2
	}
	return g
}

func (g *gauge[T]) full() bool { return g.max > 0 && g.awaiting.Load() >= g.max }

// enter counts a call in, and reports whether nobody is left now.
func (g *gauge[T]) enter() bool { return g.awaiting.Add(1) >= g.max && g.max > 0 }

func (g *gauge[T]) leave() { g.awaiting.Add(-1) }

// sitOut lets a call wait although the service asks for longer than it may take, unless the Submits that
// do, in all queues, are half of those there can be: the sound queues keep the rest.
//
// Where there is more than one they are not all refused, because whoever reads what is nacked may
// deliver it again at once, and then do nothing else.
func (g *gauge[T]) sitOut(c *call[T]) bool {
	if g.maySit < 0 || c.sits {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.sub.sitting == 0 {
		if g.sitting >= g.maySit {
			return false
		}
		g.sitting++
	}
	c.sub.sitting++
	c.sits = true
	return true
}

// getUp ends what sitOut began.
func (g *gauge[T]) getUp(c *call[T]) {
	if !c.sits {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.sits = false
	if c.sub.sitting--; c.sub.sitting == 0 {
		g.sitting--
	}
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
		b := g.next(by)
		if b == nil {
			return
		}
		b.nudge()
	}
}

// next takes the next queue off the list, nil when there is none but by, which stays: since it has
// looked another caller may have come that lingers in it.
func (g *gauge[T]) next(by *Batcher[T]) *Batcher[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queues.front() == by {
		g.queues.turn()
	}
	b := g.queues.front()
	if b == nil || b == by {
		return nil
	}
	g.queues.remove(&b.inGauge)
	return b
}
