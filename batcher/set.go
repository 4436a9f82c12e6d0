package batcher

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Set schedules the requests of all queues of one output: a Batcher for each, opened on first
// use and dropped when nobody has used it for Options.IdleTimeout. Queues share their callers and
// nothing else: whether anybody is left who could add (Options.MaxInFlight), and how many may sit out a
// long pause (Options.ManyQueues). One that is throttled, full or held up slows no other, but by the
// callers that wait in it. Methods may be called from any goroutine.
type Set[T any] struct {
	send   SendFunc[T]
	opts   Options
	gauge  *gauge[T]
	ctx    context.Context // of every send, see Batcher
	cancel context.CancelFunc
	epoch  time.Time
	wg     sync.WaitGroup // the timer
	unused submissions[T]

	mu     sync.Mutex // guards what follows; a Batcher's lock may be taken under it, never before it
	closed bool
	queues map[string]*opened[T]
	sweep  wakeup
}

// opened is a Batcher and whether it may be dropped.
type opened[T any] struct {
	batcher *Batcher[T]
	users   int           // Submits
	since   time.Duration // when the last of them left
}

// NewSet returns a Set without any queue. It fails when an option is out of range. It starts
// nothing.
func NewSet[T any](send SendFunc[T], opts Options) (*Set[T], error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if send == nil {
		return nil, errors.New("batcher: no SendFunc")
	}
	s := &Set[T]{
		send: send, opts: opts, epoch: time.Now(),
		queues: make(map[string]*opened[T]),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.gauge = newGauge[T](&opts)
	s.sweep = wakeup{wg: &s.wg, look: s.dropIdle}
	return s, nil
}

// Submit is Batcher.Submit for entries of any queues: each queue's entries keep their order, and
// the queues go side by side.
func (s *Set[T]) Submit(ctx context.Context, entries []Entry[T]) []error {
	if len(entries) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return refuse(len(entries), err)
	}
	positions := split(entries)
	sub := s.unused.get()
	sub.prepare(entries, s.gauge, max(1, len(positions)))
	for i := range sub.calls {
		c := &sub.calls[i]
		c.len = len(entries)
		if positions != nil {
			c.positions, c.len = positions[i], len(positions[i])
		}
	}
	if !s.enter(sub) {
		return refuse(len(entries), ErrClosed)
	}
	results, reusable := sub.run(ctx, s.opts.CancelGrace)
	s.leave(sub)
	if reusable {
		s.unused.put(sub)
	}
	return results
}

// enter gives each call its queue, which stays open until leave. It fails when s is closed.
func (s *Set[T]) enter(sub *submission[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	for i := range sub.calls {
		c := &sub.calls[i]
		name := sub.entries[c.position(0)].Queue
		q := s.queues[name]
		if q == nil {
			q = &opened[T]{batcher: newBatcher(s.ctx, name, s.send, s.opts, s.gauge)}
			s.queues[name] = q
		}
		q.users++
		c.opened, c.batcher = q, q.batcher
	}
	return true
}

func (s *Set[T]) leave(sub *submission[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.epoch)
	for i := range sub.calls {
		q := sub.calls[i].opened
		if q.users--; q.users > 0 {
			continue
		}
		q.since = now
		if !s.closed {
			s.sweep.set(now+s.opts.IdleTimeout, now)
		}
	}
}

// split sorts entries by queue: for each queue the positions of its entries, nil when there is one
// queue only.
func split[T any](entries []Entry[T]) (positions [][]int) {
	first := entries[0].Queue
	same := 1
	for same < len(entries) && entries[same].Queue == first {
		same++
	}
	if same == len(entries) {
		return nil
	}
	where := make(map[string]int)
	for i := range entries {
		name := entries[i].Queue
		n, ok := where[name]
		if !ok {
			n = len(positions)
			where[name] = n
			positions = append(positions, nil)
		}
		positions[n] = append(positions[n], i)
	}
	return positions
}

// Close closes every queue as Batcher.Close does.
func (s *Set[T]) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.sweep.stop()
	s.mu.Unlock()

	batchers := s.batchers()
	wgs := []*sync.WaitGroup{&s.wg}
	for _, b := range batchers {
		b.shut()
		wgs = append(wgs, &b.wg)
	}
	return drain(ctx, s.cancel, wgs...)
}

func (s *Set[T]) batchers() []*Batcher[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Batcher[T], 0, len(s.queues))
	for _, q := range s.queues {
		all = append(all, q.batcher)
	}
	return all
}

// dropIdle forgets queues that nobody has used for a while. A Batcher without work is memory only:
// no goroutine and no timer waits in it.
func (s *Set[T]) dropIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := time.Since(s.epoch)
	s.sweep.fired(now)
	next := never
	for name, q := range s.queues {
		if q.users > 0 {
			continue // its last user sets the timer
		}
		at := q.since + s.opts.IdleTimeout
		if at <= now {
			if q.batcher.idle() {
				q.batcher.shut() // for its timer
				s.gauge.forget(&q.batcher.inGauge)
				delete(s.queues, name)
				continue
			}
			at = now + s.opts.IdleTimeout
		}
		if next == never || at < next {
			next = at
		}
	}
	if next != never {
		s.sweep.set(next, now)
	}
}
