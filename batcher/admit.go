package batcher

import (
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A call is one Submit's part in one queue. Its entries are admitted in order by whoever holds the
// lock when there is room: Submit itself, or a request that comes back. So a caller that waits for
// room is not woken to compete for it.
type call[T any] struct {
	batcher   *Batcher[T]
	opened    *opened[T] // in a Set: its hold on the batcher
	sub       *submission[T]
	positions []int // in sub.entries; nil means all of them
	len       int   // how many entries
	next      int   // the first that is not admitted yet
	open      int   // entries that have no result yet
	items     ring[item[T]]

	counted bool // the gauge knows that nothing is added any more
	sits    bool // the gauge counts it among those that sit out a long pause

	// gone says why nothing of this call is sent any more: its ctx has ended, or Close was called.
	gone error
	// abandoned: Submit returned before its last request; sub must not be touched.
	abandoned bool
	// broken holds the groups that gave up while this call had entries waiting for room. Those have
	// been read by the caller before it learns of the failure, just as the admitted ones.
	broken map[string]*classify.Error

	inCalls node[call[T]]
	inLine  node[call[T]]
	line    *ring[call[T]] // where it waits for room; nil when it does not
	lineOf  *tenant[T]     // whose line that is; nil for the queue's
}

// waits reports whether there is anything of c that has still to leave.
func (c *call[T]) waits() bool {
	for n := c.next; n < c.len; n++ {
		if c.broken[c.sub.entries[c.position(n)].Group] == nil {
			return true
		}
	}
	for it := range c.items.all {
		if it.state != itemSent {
			return true
		}
	}
	return false
}

func (c *call[T]) position(n int) int {
	if c.positions == nil {
		return n
	}
	return c.positions[n]
}

// A turn says from the head of which line a call comes: its next entry does not wait behind others
// there again.
type turn uint8

const (
	turnNone turn = iota
	turnTenant
	turnQueue
)

// advanceLocked admits entries of c until one has to wait for room, and puts c in line for that.
//
// There is a line for each tenant's room and one for the queue's, so that a tenant at its ceiling
// keeps nobody else out. A call that has waited gets one entry in before the next in line has its
// turn: a call with 100,000 entries leaves room to one with five.
func (b *Batcher[T]) advanceLocked(c *call[T], from turn, now time.Duration) {
	for ; c.next < c.len; c.next++ {
		i := c.position(c.next)
		e := &c.sub.entries[i]
		if err := c.broken[e.Group]; err != nil {
			b.resolveLocked(c, i, err)
			continue
		}
		t := b.tenantLocked(e.Tenant)
		if t.waiting >= b.opts.QueueTenantMax || from == turnNone && t.line.len > 0 {
			b.lineUpLocked(c, &t.line, t)
			if from == turnQueue { // it was first there, so nobody here has waited longer
				t.line.at = &c.inLine
			}
			return
		}
		if !b.roomLocked(e) || from != turnQueue && b.line.len > 0 {
			b.lineUpLocked(c, &b.line, nil)
			b.dropTenantLocked(t)
			return
		}
		from = turnNone
		b.enqueueLocked(c, i, t, now)
	}
	b.countLocked(c)
}

// countLocked tells the gauge, once, that c adds nothing more.
func (b *Batcher[T]) countLocked(c *call[T]) {
	if c.counted {
		return
	}
	c.counted = true
	if c.sub.admitted() {
		b.told.flush = true // the other queues; this one looks for itself
	}
}

func (b *Batcher[T]) roomLocked(e *Entry[T]) bool {
	w := b.waiting
	return w.entries == 0 || w.entries < b.opts.QueueMax && w.bytes+e.Size <= b.opts.QueueMaxBytes
}

func (b *Batcher[T]) enqueueLocked(c *call[T], i int, t *tenant[T], now time.Duration) {
	it := b.newItemLocked()
	it.call, it.index, it.tenant = c, i, t
	it.leaveBy = now + b.opts.Linger
	t.users++
	l := &t.own
	if group := it.entry().Group; group != "" {
		l = b.groupLocked(group)
	}
	it.lane = l
	l.users++
	c.items.push(&it.inCall)
	l.items.push(&it.inLane)
	l.load.add(it.entry().load())
	b.waitLocked(it)
	b.placeLocked(l, now)
}

func (b *Batcher[T]) lineUpLocked(c *call[T], line *ring[call[T]], t *tenant[T]) {
	c.line, c.lineOf = line, t
	line.push(&c.inLine)
	if t != nil {
		t.users++
	}
}

func (b *Batcher[T]) leaveLineLocked(c *call[T]) {
	if c.line == nil {
		return
	}
	c.line.remove(&c.inLine)
	t := c.lineOf
	c.line, c.lineOf = nil, nil
	if t != nil {
		t.users--
		b.dropTenantLocked(t)
	}
}

// admitLocked gives room that has become free to those that wait for it.
func (b *Batcher[T]) admitLocked(now time.Duration) {
	for {
		if c := b.unblocked.front(); c != nil {
			b.leaveLineLocked(c)
			b.advanceLocked(c, turnNone, now)
			continue
		}
		if t := b.roomy.front(); t != nil {
			b.roomy.remove(&t.roomy)
			for t.waiting < b.opts.QueueTenantMax && t.line.len > 0 {
				c := t.line.front()
				// t must outlive the loop: dropped and reused, it would be another tenant.
				t.users++
				b.leaveLineLocked(c)
				b.advanceLocked(c, turnTenant, now)
				t.users--
			}
			b.dropTenantLocked(t)
			continue
		}
		c := b.line.front()
		if c == nil {
			return
		}
		e := &c.sub.entries[c.position(c.next)]
		t := b.tenants[e.Tenant]
		atCeiling := t != nil && t.waiting >= b.opts.QueueTenantMax // it waits for that, then, and not at this head
		if !b.roomLocked(e) && !atCeiling {
			return
		}
		b.leaveLineLocked(c)
		b.advanceLocked(c, turnQueue, now)
	}
}

// resolveLocked gives entry i of c its result.
func (b *Batcher[T]) resolveLocked(c *call[T], i int, err *classify.Error) {
	if err != nil { // a nil *Error must not become a non-nil error
		c.sub.results[i] = err
	}
	c.open--
	if c.open == 0 {
		b.completeLocked(c)
	}
}

// completeLocked ends a call. Its Submit is told when the lock is released: from then on it may
// reuse c.
func (b *Batcher[T]) completeLocked(c *call[T]) {
	b.calls.remove(&c.inCalls)
	b.countLocked(c) // before finished: the gauge counts a call in, then out
	b.gauge.getUp(c)
	if c.sub.finished() {
		b.done = append(b.done, c.sub)
	}
}

// finishLocked ends an item that is in no lane and no heap any more.
func (b *Batcher[T]) finishLocked(it *item[T], err *classify.Error) {
	c, t, l := it.call, it.tenant, it.lane
	index := it.index
	if it.inCall.linked() { // not when abandoned
		c.items.remove(&it.inCall)
	}
	it.call, it.tenant, it.lane, it.last = nil, nil, nil, nil
	b.freeItems = append(b.freeItems, it)
	l.users--
	b.dropLaneLocked(l)
	t.users--
	b.dropTenantLocked(t)
	if !c.abandoned {
		b.resolveLocked(c, index, err)
	}
}
