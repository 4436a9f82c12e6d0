package batcher

import "sync/atomic"

// A gauge knows whether anyone is left who could add to a request: it counts the Submit calls that
// have all their entries admitted, in all their queues, and await results.
//
// It is read as a level, each time a request might leave, and not fired as an event: what becomes
// sendable while nobody is left, such as a group whose request is back, leaves at once too.
type gauge struct {
	max      int64 // 0: not known
	awaiting atomic.Int64
	flush    func() // makes all queues look, called without a lock each time the gauge becomes full
}

func (g *gauge) full() bool { return g.max > 0 && g.awaiting.Load() >= g.max }

// enter counts a call in, and reports whether nobody is left now.
func (g *gauge) enter() bool { return g.awaiting.Add(1) >= g.max && g.max > 0 }

func (g *gauge) leave() { g.awaiting.Add(-1) }
