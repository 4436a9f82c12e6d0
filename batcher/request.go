package batcher

import (
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A request is what one call of the SendFunc carries. Requests are reused.
type request[T any] struct {
	items   []*item[T]
	values  []T // the items' values, in the same order
	load    load
	lanes   []*lane[T] // the groups in it, each held by it
	drained []*lane[T] // while it is filled: lanes to place
	seq     uint64     // in the order of leaving

	results []*classify.Error // one per item, nil for success
	failure *classify.Error   // the result of items that have none
	run     func()
}

// nextLocked returns the next request that may leave now, filled, or nil.
func (b *Batcher[T]) nextLocked(now time.Duration) *request[T] {
	if !b.readyLocked(now) {
		return nil
	}
	nobodyLeft := b.gauge.full()
	shared := &b.pools[poolShared]
	sharedLeaves := shared.load.entries > 0 && (shared.due > 0 || nobodyLeft || b.fullLocked(shared.load))
	var group *pool[T]
	if b.pools[poolDue].seats.len > 0 {
		group = &b.pools[poolDue]
	} else if nobodyLeft && b.pools[poolLingering].seats.len > 0 {
		group = &b.pools[poolLingering]
	}
	// With OneGroupPerRequest entries without a group and groups take turns.
	switch {
	case sharedLeaves && (group == nil || b.groupsTurn):
		b.groupsTurn = false
		return b.fillLocked(shared, false, now)
	case group != nil:
		b.groupsTurn = true
		return b.fillLocked(group, true, now)
	}
	return nil
}

// readyLocked reports whether there are entries that may leave, and a request may.
func (b *Batcher[T]) readyLocked(now time.Duration) bool {
	if b.closed || b.inFlight >= b.pace.window || now < b.pace.pausedUntil {
		return false
	}
	for i := range b.pools {
		if b.pools[i].seats.len > 0 {
			return true
		}
	}
	return false
}

// fillLocked fills a request from the lanes of p, or from the first of them only.
//
// The rounds of tenants, and of each tenant's lanes, go on where the last request ended. Beginning
// at the same place each time would let its tenant fill every request. A turn takes one entry, or
// as many of a group as fit: handing out a group's entries one by one would put a little of every
// group into one request, and hold them all until it is back, where each could fill its own. So that
// a tenant of many small groups gets as much as one of few large groups, the round of tenants goes on
// only when a tenant's groups have taken as much as one group could.
func (b *Batcher[T]) fillLocked(p *pool[T], alone bool, now time.Duration) *request[T] {
	r := b.newRequestLocked()
	for s := p.seats.front(); s != nil && !b.fullLocked(r.load); s = p.seats.front() {
		l := s.lanes.front()
		if !b.fits(r, l.items.front()) {
			break // it is the first in the next request
		}
		s.lanes.turn()
		if alone {
			p.seats.turn()
			b.takeTurnLocked(r, l)
			break
		}
		before := len(r.items)
		b.takeTurnLocked(r, l)
		if s.lanes.len == 0 {
			s.taken = 0 // it has left the round
			continue
		}
		if s.taken += len(r.items) - before; l.group == "" || s.taken >= b.opts.MaxEntries {
			s.taken = 0
			p.seats.turn()
		}
	}
	for _, l := range r.drained {
		l.drained = false
		b.placeLocked(l, now)
	}
	clear(r.drained)
	r.drained = r.drained[:0]
	return r
}

// takeTurnLocked moves entries from l, which offers at least one that fits, to r.
func (b *Batcher[T]) takeTurnLocked(r *request[T], l *lane[T]) {
	if l.group == "" {
		if !l.drained {
			l.drained = true
			r.drained = append(r.drained, l)
		}
		b.takeLocked(r, l.items.front())
		if l.items.len == 0 {
			b.unseatLocked(l)
		}
		return
	}
	l.state = laneHeld
	b.alarms.set(&l.alarm, never) // what stays waits for this request, even past its time, or it would overtake
	l.users++
	r.lanes = append(r.lanes, l)
	for {
		b.takeLocked(r, l.items.front())
		if head := l.items.front(); head == nil || b.opts.StrictOrder || !b.fits(r, head) {
			break
		}
	}
	b.unseatLocked(l)
}

func (b *Batcher[T]) takeLocked(r *request[T], it *item[T]) {
	e := it.entry()
	r.items = append(r.items, it)
	r.values = append(r.values, e.Value)
	r.load.add(e.load())
	b.leaveLocked(it)
	it.state = itemSent
}

// fits reports whether it can join r. Alone in a request anything fits.
func (b *Batcher[T]) fits(r *request[T], it *item[T]) bool {
	if r.load.entries == 0 {
		return true
	}
	o := &b.opts
	l := r.load
	l.add(it.entry().load())
	return l.entries <= o.MaxEntries &&
		(o.MaxBytes == 0 || l.bytes <= o.MaxBytes) &&
		(o.MaxWireBytes == 0 || l.wire+o.RequestWireBytes <= o.MaxWireBytes)
}

// fullLocked reports whether nothing could be added to a request made of l.
func (b *Batcher[T]) fullLocked(l load) bool {
	o := &b.opts
	return l.entries >= o.MaxEntries ||
		o.MaxBytes > 0 && l.bytes >= o.MaxBytes ||
		o.MaxWireBytes > 0 && l.wire+o.RequestWireBytes >= o.MaxWireBytes
}

func (b *Batcher[T]) launchLocked(r *request[T], now time.Duration) {
	b.seq++
	r.seq = b.seq
	for _, it := range r.items {
		if it.firstSent == never {
			it.firstSent = now
		}
	}
	b.inFlight++
	b.wg.Go(r.run) // ends when the SendFunc returns
}

// send is a request's way through the SendFunc and back.
func (b *Batcher[T]) send(r *request[T]) {
	// Deferred, so that neither a panic nor a Goexit leaves anyone waiting.
	defer b.settle(r)
	r.failure = errMissing
	for i, err := range b.sendFunc(b.ctx, b.queue, r.values) {
		if i == len(r.items) {
			break
		}
		var e *classify.Error
		if err != nil {
			if e = classify.Of(err); e == nil {
				e = errMissing // a nil *classify.Error in an error says nothing
			}
		}
		r.results = append(r.results, e)
	}
}

// settle ends a request. It must be deferred itself, for recover.
func (b *Batcher[T]) settle(r *request[T]) {
	if value := recover(); value != nil {
		r.failure = panicked(value)
	}
	for len(r.results) < len(r.items) {
		r.results = append(r.results, r.failure)
	}
	now := b.lock()
	b.inFlight--
	b.settleLocked(r, now)
	b.recycleLocked(r)
	b.release(now)
}

func (b *Batcher[T]) newRequestLocked() *request[T] {
	r := take(&b.freeRequests)
	if r == nil {
		r = &request[T]{}
		r.run = func() { b.send(r) }
	}
	return r
}

func (b *Batcher[T]) recycleLocked(r *request[T]) {
	clear(r.items)
	clear(r.values)
	clear(r.lanes)
	clear(r.results)
	r.items, r.values, r.lanes, r.results = r.items[:0], r.values[:0], r.lanes[:0], r.results[:0]
	r.load, r.failure = load{}, nil
	b.freeRequests = append(b.freeRequests, r)
}
