package batcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A submission is one Submit: its calls, one per queue, each owned by its queue's Batcher, and
// what they share. Nothing in it is per entry but the results.
type submission[T any] struct {
	entries   []Entry[T]
	results   []error
	gauge     *gauge[T]
	calls     []call[T]
	admitting atomic.Int32  // calls that have entries to admit
	open      atomic.Int32  // calls that have entries without a result
	sitting   int           // calls that sit out a long pause; guarded by gauge.mu
	done      chan struct{} // holds one when open has become 0; its sender touches nothing after
}

// submissions keeps those that can be used again.
type submissions[T any] struct{ pool sync.Pool }

func (p *submissions[T]) get() *submission[T] {
	if s, ok := p.pool.Get().(*submission[T]); ok {
		return s
	}
	return &submission[T]{done: make(chan struct{}, 1)}
}

func (p *submissions[T]) put(s *submission[T]) { p.pool.Put(s) }

// admitted counts one call less, and reports whether the gauge became full by that.
func (s *submission[T]) admitted() bool {
	return s.admitting.Add(-1) == 0 && s.gauge.enter()
}

// finished counts one call less, and reports whether it was the last. The gauge goes down before
// anything else is decided: this caller is about to come back.
func (s *submission[T]) finished() bool {
	if s.open.Add(-1) > 0 {
		return false
	}
	s.gauge.leave()
	return true
}

// prepare makes s ready for n calls. The caller fills in their batcher, positions and len.
func (s *submission[T]) prepare(entries []Entry[T], g *gauge[T], n int) {
	s.entries, s.results, s.gauge = entries, make([]error, len(entries)), g
	if cap(s.calls) < n {
		s.calls = make([]call[T], n)
	}
	s.calls = s.calls[:n]
	s.admitting.Store(int32(n))
	s.open.Store(int32(n))
	for i := range s.calls {
		c := &s.calls[i]
		*c = call[T]{sub: s}
		c.inCalls.of, c.inLine.of = c, c
	}
}

// run does the whole Submit, and reports whether s may be used again.
func (s *submission[T]) run(ctx context.Context, grace time.Duration) (results []error, reusable bool) {
	for i := range s.calls {
		c := &s.calls[i]
		c.open = c.len
		c.batcher.start(c)
	}
	reusable = true
	select {
	case <-s.done:
	case <-ctx.Done():
		reusable = s.stop(ctx.Err(), grace)
	}
	results = s.results
	s.entries, s.results = nil, nil
	return results, reusable
}

// stop ends a Submit whose ctx has ended: what has not left is withdrawn, what has left is awaited
// for grace. It reports whether everything came back by then.
func (s *submission[T]) stop(why error, grace time.Duration) bool {
	for i := range s.calls {
		s.calls[i].batcher.withdraw(&s.calls[i], why)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.done:
		return true
	case <-timer.C:
	}
	for i := range s.calls {
		s.calls[i].batcher.abandon(&s.calls[i], why)
	}
	<-s.done // at once: no call is open any more
	return false
}

// refuse returns the results of n entries that were not admitted.
func refuse(n int, why error) []error {
	results := make([]error, n)
	err := withdrawn(why, nil)
	for i := range results {
		results[i] = err
	}
	return results
}
