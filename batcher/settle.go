package batcher

import (
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// settleLocked hands out the results of a request that is back, and decides what is sent again.
func (b *Batcher[T]) settleLocked(r *request[T], now time.Duration) {
	draw := b.pace.settled(r.seq, b.seq, r.results, &b.opts, now)

	// First, in order: who is done, who is given up, who is retried. An entry that is given up ends
	// its group's run: what failed behind it in this request, and what waits behind it, fails too.
	for i, it := range r.items {
		e, l := r.results[i], it.lane
		switch {
		case e == nil, e.Class == classify.Permanent, it.call.gone != nil:
			// Taken; or it alone is refused; or its caller has gone: it is not sent again, and as
			// nobody waits for it, it holds back no one.
		case l.gaveUp != nil && e.Class.Retryable():
			e = l.gaveUp
		default:
			at, again := b.retryAt(it, e, draw, now)
			if again {
				it.last, it.again = e, at
				b.told.retries[e.Class]++
				continue
			}
			if l.group != "" && l.gaveUp == nil {
				b.giveUpLocked(l, e)
			}
		}
		r.items[i] = nil
		b.finishLocked(it, e)
	}

	// Then, from the last to the first, so that each group's retries are at its front in order.
	for i := len(r.items) - 1; i >= 0; i-- {
		it := r.items[i]
		if it == nil {
			continue
		}
		it.leaveBy, it.expires = 0, never
		if limit := b.opts.MaxElapsedTime; limit > 0 {
			it.expires = it.firstSent + limit + 1 // after a last try at the limit itself
		}
		b.waitLocked(it)
		l := it.lane
		if l.group == "" {
			it.state = itemParked
			b.alarms.set(&it.retry, it.again)
			continue
		}
		it.state = itemWaiting
		l.items.pushFront(&it.inLane)
		l.load.add(it.entry().load())
		l.retries++
	}

	for _, l := range r.lanes {
		l.gaveUp = nil
		b.openLocked(l, now)
		l.users--
		b.dropLaneLocked(l)
	}

	if b.pace.tooLong(&b.opts, now) {
		b.refuseLocked(now)
	}
}

// refuseLocked fails the calls that may not sit out a pause, the latest to come first.
func (b *Batcher[T]) refuseLocked(now time.Duration) {
	unsent := b.pace.refusal(&b.opts, now)
	for c := range b.calls.all {
		if c.waits() && !b.gauge.sitOut(c) {
			b.expelLocked(c, unsent, now)
		}
	}
}

// expireLocked gives up a retry that the queue could not send in its time; one of a group is the first
// of its lane.
func (b *Batcher[T]) expireLocked(it *item[T], now time.Duration) {
	l, last := it.lane, it.last
	l.users++ // until it is placed
	b.leaveLocked(it)
	b.finishLocked(it, last)
	if l.group == "" {
		b.placeLocked(l, now)
	} else {
		b.giveUpLocked(l, last)
		l.gaveUp = nil
		b.openLocked(l, now)
	}
	l.users--
	b.dropLaneLocked(l)
}

// giveUpLocked fails what waits behind an entry of l that has been given up because of e.
func (b *Batcher[T]) giveUpLocked(l *lane[T], e *classify.Error) {
	l.gaveUp = heldBehind(e)
	for it := l.items.front(); it != nil; it = l.items.front() {
		b.leaveLocked(it)
		b.finishLocked(it, l.gaveUp)
	}
	for c := range b.calls.all {
		if c.next < c.len {
			if c.broken == nil {
				c.broken = make(map[string]*classify.Error)
			}
			c.broken[l.group] = l.gaveUp
			if c.line != nil && c.sub.entries[c.position(c.next)].Group == l.group {
				b.leaveLineLocked(c) // it needs no room: it has a result
				b.lineUpLocked(c, &b.unblocked, nil)
			}
		}
	}
}

// retryAt says when an entry that failed with e is sent again, or that it is not. draw is the
// request's: what failed together comes back together, or a request of a thousand entries would
// come back as a thousand requests.
func (b *Batcher[T]) retryAt(it *item[T], e *classify.Error, draw float64, now time.Duration) (at time.Duration, again bool) {
	if !e.Class.Retryable() {
		return 0, false
	}
	o := &b.opts
	wait := max(o.backoff(it.tries, draw), e.RetryAfter)
	if e.Code != CodeHeld { // held: it was not even sent
		it.tries++
		if o.MaxRetries > 0 && it.tries > o.MaxRetries {
			return 0, false
		}
	}
	if o.MaxElapsedTime > 0 {
		left := it.firstSent + o.MaxElapsedTime - now
		if left <= 0 || max(e.RetryAfter, b.pace.pausedUntil-now) > left {
			return 0, false
		}
		wait = min(wait, left) // one last try at the end, rather than none in a long last wait
	}
	return now + wait, true
}

// backoff returns the wait before retry n, the first being 0.
func (o *Options) backoff(n int, draw float64) time.Duration {
	limit := o.MaxInterval
	if n < 62 && o.InitialInterval <= o.MaxInterval>>n {
		limit = o.InitialInterval << n
	}
	return time.Duration(draw * float64(limit))
}
