package batcher

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A Batcher schedules the requests of one queue. Its methods may be called from any goroutine.
type Batcher[T any] struct {
	queue    string
	sendFunc SendFunc[T]
	opts     Options
	gauge    *gauge[T]
	inGauge  node[Batcher[T]] // guarded by gauge.mu

	// ctx is that of every send: it ends with the Batcher and not with any call, so it can't be a
	// parameter.
	ctx    context.Context
	cancel context.CancelFunc
	epoch  time.Time // where the Batcher's clock begins
	unused submissions[T]
	wg     sync.WaitGroup // requests in flight, and the timer

	mu     sync.Mutex // guards what follows; never held across a send, a channel wait or a sleep
	closed bool

	calls   ring[call[T]] // every call with entries that have no result
	tenants map[string]*tenant[T]
	groups  map[string]*lane[T]
	waiting load            // admitted and not in flight: what the ceilings limit
	line    ring[call[T]]   // calls whose next entry waits for the queue's room
	roomy   ring[tenant[T]] // tenants with a line that may have room

	unblocked ring[call[T]] // calls that need not wait for room any more

	pools      [numPools]pool[T]
	groupsTurn bool // pools take turns: see nextLocked
	alarms     alarms[T]
	wakeup     wakeup
	pace       pace
	seq        uint64 // the last request that left
	inFlight   int    // requests

	done []*submission[T] // to be told when the lock is released
	told changes

	freeItems    []*item[T]
	freeLanes    []*lane[T]
	freeTenants  []*tenant[T]
	freeRequests []*request[T]
}

// changes are what others have to be told once the lock is released.
type changes struct {
	entries, bytes, held int
	retries              [4]int // by classify.Class
	flush                bool
}

// New returns a Batcher for queue, which is only passed on to send. It fails when an option is out
// of range.
func New[T any](queue string, send SendFunc[T], opts Options) (*Batcher[T], error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if send == nil {
		return nil, errors.New("batcher: no SendFunc")
	}
	return newBatcher(context.Background(), queue, send, opts, newGauge[T](&opts)), nil
}

func newBatcher[T any](ctx context.Context, queue string, send SendFunc[T], opts Options, g *gauge[T]) *Batcher[T] {
	b := &Batcher[T]{
		queue: queue, sendFunc: send, opts: opts, gauge: g,
		epoch:   time.Now(),
		tenants: make(map[string]*tenant[T]),
		groups:  make(map[string]*lane[T]),
		pace:    pace{window: opts.MaxRequests},
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.inGauge.of = b
	b.wakeup = wakeup{wg: &b.wg, look: b.look}
	return b
}

// Submit sends entries and returns one result for each, in their order, nil when it was taken. It
// blocks until all are known. Every failure is a *classify.Error.
//
// Entries are admitted one by one, in order, each waiting for room below the ceilings. When ctx
// ends, entries that have not left are withdrawn and fail with ctx's error; a request that has
// left is awaited for Options.CancelGrace, after which its entries fail as of unknown outcome.
//
// The entries, but not their values, may be reused when Submit has returned.
func (b *Batcher[T]) Submit(ctx context.Context, entries []Entry[T]) []error {
	if len(entries) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return refuse(len(entries), err)
	}
	s := b.unused.get()
	s.prepare(entries, b.gauge, 1)
	s.calls[0].batcher, s.calls[0].len = b, len(entries)
	results, reusable := s.run(ctx, b.opts.CancelGrace)
	if reusable {
		b.unused.put(s)
	}
	return results
}

// Close takes nothing new, fails with ErrClosed what has not left, lets what has left finish and
// waits for every goroutine. Once no Submit awaits a result, it cancels the sends that are left, those of
// Submits that were cancelled. When ctx ends first it cancels all, still waits, and returns ctx's error.
// Closing twice is fine.
func (b *Batcher[T]) Close(ctx context.Context) error {
	b.shut()
	return drain(ctx, b.cancel, &b.wg)
}

// drain waits for wgs and ends the sends with cancel when ctx ends first.
func drain(ctx context.Context, cancel context.CancelFunc, wgs ...*sync.WaitGroup) error {
	stop := context.AfterFunc(ctx, cancel)
	for _, wg := range wgs {
		wg.Wait()
	}
	if stop() {
		cancel() // nobody uses it any more
		return nil
	}
	return ctx.Err()
}

// The transitions. Each takes the lock, changes the state, and lets release draw the conclusions:
// who is admitted, what leaves, when to look again.

// start opens a call and admits its entries.
func (b *Batcher[T]) start(c *call[T]) {
	now := b.lock()
	b.calls.push(&c.inCalls)
	switch {
	case b.closed:
		b.withdrawLocked(c, ErrClosed, now)
	case b.pace.tooLong(&b.opts, now) && !b.gauge.sitOut(c):
		b.expelLocked(c, b.pace.refusal(&b.opts, now), now)
	default:
		b.advanceLocked(c, turnNone, now)
	}
	b.release(now)
}

// withdraw fails with why what has not left of a call.
func (b *Batcher[T]) withdraw(c *call[T], why error) {
	now := b.lock()
	if c.open > 0 {
		b.withdrawLocked(c, why, now)
	}
	b.release(now)
}

func (b *Batcher[T]) withdrawLocked(c *call[T], why error, now time.Duration) {
	if c.gone != nil {
		return
	}
	c.gone = why
	b.expelLocked(c, withdrawn(why, nil), now)
}

// expelLocked fails what has not left of c: with unsent what never left, and what waits for a retry
// with its last failure, wrapped when c is gone.
func (b *Batcher[T]) expelLocked(c *call[T], unsent *classify.Error, now time.Duration) {
	b.leaveLineLocked(c)
	b.countLocked(c)
	for it := range c.items.all {
		if it.state == itemSent {
			continue
		}
		err := unsent
		if it.last != nil {
			if err = it.last; c.gone != nil {
				err = withdrawn(c.gone, err)
			}
		}
		l := it.lane
		b.leaveLocked(it)
		if l.state == laneParked {
			b.openLocked(l, now) // it may have been the one that the group waited for
		} else {
			b.placeLocked(l, now)
		}
		b.finishLocked(it, err)
	}
	for c.next < c.len {
		i := c.position(c.next)
		c.next++
		err := c.broken[c.sub.entries[i].Group]
		b.resolveLocked(c, i, cmp.Or(err, unsent))
	}
}

// abandon fails what is still in flight of a withdrawn call, without waiting for it.
func (b *Batcher[T]) abandon(c *call[T], why error) {
	now := b.lock()
	if c.open > 0 {
		c.abandoned = true
		err := unknown(why)
		for it := range c.items.all {
			c.items.remove(&it.inCall)
			b.resolveLocked(c, it.index, err)
		}
	}
	b.release(now)
}

// look is the timer's: nothing has changed but the time.
func (b *Batcher[T]) look() {
	now := b.lock()
	b.wakeup.fired(now)
	b.release(now)
}

// nudge is the gauge's: nobody is left who could add.
func (b *Batcher[T]) nudge() { b.release(b.lock()) }

// shut begins Close.
func (b *Batcher[T]) shut() {
	now := b.lock()
	if !b.closed {
		b.closed = true
		b.wakeup.stop()
		for c := range b.calls.all {
			b.withdrawLocked(c, ErrClosed, now)
		}
	}
	b.release(now)
}

// lock takes the lock and reads the clock.
func (b *Batcher[T]) lock() (now time.Duration) {
	b.mu.Lock()
	return b.now()
}

func (b *Batcher[T]) now() time.Duration { return time.Since(b.epoch) }

// release makes everything happen that can happen now, arms the timer for what happens next, and
// gives up the lock.
func (b *Batcher[T]) release(now time.Duration) {
	if !b.closed {
		for {
			b.wakeLocked(now)
			b.admitLocked(now)
			if r := b.nextLocked(now); r != nil {
				b.launchLocked(r, now)
			} else if !b.listLocked(now) {
				break
			}
		}
		if at := b.alarms.next(); at != never {
			b.wakeup.set(at, now)
		}
		if b.waiting.entries > 0 && b.pace.pausedUntil > now {
			b.wakeup.set(b.pace.pausedUntil, now)
		}
	}
	for i, s := range b.done {
		s.done <- struct{}{} // has room for it
		b.done[i] = nil
	}
	b.done = b.done[:0]
	told := b.told
	b.told = changes{}
	over := b.closed && b.calls.len == 0
	b.mu.Unlock()
	if over {
		b.cancel() // nobody awaits what is still in flight
	}
	b.tell(told)
}

// listLocked has the gauge nudge b when it becomes full, if b waits for that. It reports whether that
// is new: then the gauge may have become full just before, and b has to look again.
func (b *Batcher[T]) listLocked(now time.Duration) bool {
	return b.readyLocked(now) && b.gauge.list(&b.inGauge)
}

// tell says what has changed to the observer and the other queues. Without the lock: they may be
// slow, or have one of their own.
func (b *Batcher[T]) tell(t changes) {
	if t.flush {
		b.gauge.flush(b)
	}
	o := b.opts.Observer
	if o == nil || t == (changes{flush: t.flush}) {
		return
	}
	if t.entries != 0 || t.bytes != 0 {
		o.Waiting(t.entries, t.bytes)
	}
	if t.held != 0 {
		o.Held(t.held)
	}
	for class, n := range t.retries {
		if n > 0 {
			o.Retried(classify.Class(class), n)
		}
	}
}

// idle reports whether the Batcher holds nothing and need not remember anything.
func (b *Batcher[T]) idle() bool {
	now := b.lock()
	defer b.mu.Unlock()
	return b.calls.len == 0 && b.inFlight == 0 && b.pace.pausedUntil <= now
}
