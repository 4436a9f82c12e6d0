package batcher

import (
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A lane is a queue of waiting entries: those of one group, in the order of admission, or those of
// one tenant that have no group. A group's retries stand before all others, in their order.
type lane[T any] struct {
	group string // empty in a tenant's own lane, which is always open
	state laneState
	items ring[item[T]]
	load  load // of items
	users int  // items and requests that point here; a group without any is forgotten

	retries     int             // items at the front that have failed before
	parkedUntil time.Duration   // when the group's retries are due
	gaveUp      *classify.Error // while a request is settled: what entries behind fail with

	// What placeLocked derives from the above.
	seat   *seat[T] // whence it offers entries; nil when none may leave
	inSeat node[lane[T]]
	offer  load // what it counts for in its pool
	due    bool // its head has lingered enough

	drained bool // while a request is filled: it has to be placed
	alarm   alarm[T]
}

type laneState uint8

const (
	laneOpen   laneState = iota // what waits may leave
	laneHeld                    // the group's request is in flight
	laneParked                  // the group waits for its retry
)

// placeLocked brings everything that is derived from a lane's state and head in line with them:
// its seat, what it offers, whether it is due, its alarm. Every transition of a lane ends here.
func (b *Batcher[T]) placeLocked(l *lane[T], now time.Duration) {
	var (
		want  *seat[T]
		offer load
		due   bool
		ring  = never
	)
	switch head := l.items.front(); {
	case l.state == laneParked:
		ring = l.parkedUntil
		if head.expires != never {
			ring = min(ring, head.expires) // another's Retry-After may be longer than its time
		}
	case l.state == laneOpen && head != nil:
		offer = l.load
		if l.group != "" && b.opts.StrictOrder {
			offer = head.entry().load()
		}
		alone := l.group != "" && b.opts.OneGroupPerRequest
		due = head.leaveBy <= now || alone && (b.opts.StrictOrder || b.fullLocked(offer))
		switch {
		case !due:
			ring = head.leaveBy
		case l.group != "":
			ring = head.expires
		}
		switch {
		case !alone:
			want = &head.tenant.seats[poolShared]
		case due:
			want = &head.tenant.seats[poolDue]
		default:
			want = &head.tenant.seats[poolLingering]
		}
	}
	if l.seat != want {
		b.unseatLocked(l)
		if want != nil {
			l.seat = want
			if want.lanes.len == 0 {
				want.pool.seats.push(&want.inPool)
			}
			want.lanes.push(&l.inSeat)
		}
	}
	if want != nil {
		want.pool.load.sub(l.offer)
		want.pool.load.add(offer)
		l.offer = offer
		if due != l.due {
			l.due = due
			if due {
				want.pool.due++
			} else {
				want.pool.due--
			}
		}
	}
	b.alarms.set(&l.alarm, ring)
}

// unseatLocked takes back all that a lane offers.
func (b *Batcher[T]) unseatLocked(l *lane[T]) {
	s := l.seat
	if s == nil {
		return
	}
	s.lanes.remove(&l.inSeat)
	if s.lanes.len == 0 {
		s.pool.seats.remove(&s.inPool)
	}
	s.pool.load.sub(l.offer)
	if l.due {
		s.pool.due--
	}
	l.seat, l.offer, l.due = nil, load{}, false
}

// openLocked lets a group go on that was held by its request or parked, unless one of its retries,
// which are at the front, is not due yet. The group waits for the latest of them: each may have a
// Retry-After of its own to respect.
func (b *Batcher[T]) openLocked(l *lane[T], now time.Duration) {
	until, n := now, l.retries
	for it := range l.items.all {
		if n--; n < 0 {
			break
		}
		until = max(until, it.again)
	}
	if l.state == laneParked {
		b.told.held--
	}
	l.state = laneOpen
	if until > now {
		l.state, l.parkedUntil = laneParked, until
		b.told.held++
	} else if head := l.items.front(); head != nil && head.expires != never {
		head.expires = max(head.expires, now+1) // it could not leave before
	}
	b.placeLocked(l, now)
}

// wakeLocked lets every alarm ring that is due.
func (b *Batcher[T]) wakeLocked(now time.Duration) {
	for len(b.alarms) > 0 && b.alarms[0].at <= now {
		a := b.alarms[0]
		b.alarms.set(a, never)
		if l := a.lane; l != nil {
			switch {
			case l.state == laneParked && l.parkedUntil <= now:
				b.openLocked(l, now)
			case l.group != "" && l.retries > 0 && l.items.front().expired(now):
				b.expireLocked(l.items.front(), now)
			default:
				b.placeLocked(l, now) // its head has lingered
			}
			continue
		}
		it := a.item
		if it.state == itemWaiting {
			b.expireLocked(it, now)
			continue
		}
		// A retry without a group leaves before what waits, and need not linger: it has waited.
		it.state = itemWaiting
		it.lane.items.pushFront(&it.inLane)
		it.lane.load.add(it.entry().load())
		if it.expires != never {
			b.alarms.set(&it.retry, max(it.expires, now+1))
		}
		b.placeLocked(it.lane, now)
	}
}

func (b *Batcher[T]) groupLocked(name string) *lane[T] {
	if l := b.groups[name]; l != nil {
		return l
	}
	l := take(&b.freeLanes)
	if l == nil {
		l = &lane[T]{}
		l.init()
	}
	l.group = name
	b.groups[name] = l
	return l
}

func (b *Batcher[T]) dropLaneLocked(l *lane[T]) {
	if l.group != "" && l.users == 0 {
		delete(b.groups, l.group)
		l.group = ""
		b.freeLanes = append(b.freeLanes, l)
	}
}

func (l *lane[T]) init() {
	l.inSeat.of = l
	l.alarm = alarm[T]{at: never, lane: l}
}
