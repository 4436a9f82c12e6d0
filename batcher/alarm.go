package batcher

import "time"

// never is the time of an alarm that is not set.
const never time.Duration = -1

// An alarm is one moment at which the state changes by itself: a lane's head has lingered, a retry is
// due, a group's or one without a group, or its time is over. It lives inside its owner; exactly one of
// lane and item is set. Alarms are no timers: one timer per Batcher serves them all.
type alarm[T any] struct {
	at   time.Duration // on the Batcher's clock; never when not set
	pos  int           // in the heap; meaningless when not set
	lane *lane[T]
	item *item[T]
}

// alarms is a binary heap of the alarms that are set, the earliest first.
type alarms[T any] []*alarm[T]

// set moves a to the time at, or unsets it when at is never.
func (h *alarms[T]) set(a *alarm[T], at time.Duration) {
	was := a.at
	switch {
	case at == was:
	case at == never:
		last := len(*h) - 1
		hole := a.pos
		if moved := (*h)[last]; hole != last {
			h.put(hole, moved)
			*h = (*h)[:last]
			h.up(hole)
			h.down(moved.pos)
		} else {
			*h = (*h)[:last]
		}
		(*h)[:last+1][last] = nil
		a.at = never
	case was == never:
		a.at = at
		*h = append(*h, a)
		a.pos = len(*h) - 1
		h.up(a.pos)
	default:
		a.at = at
		h.up(a.pos)
		h.down(a.pos)
	}
}

// next returns when the earliest alarm rings, never when none is set.
func (h alarms[T]) next() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].at
}

func (h alarms[T]) put(pos int, a *alarm[T]) {
	h[pos] = a
	a.pos = pos
}

func (h alarms[T]) up(pos int) {
	a := h[pos]
	for pos > 0 {
		parent := (pos - 1) / 2
		if h[parent].at <= a.at {
			break
		}
		h.put(pos, h[parent])
		pos = parent
	}
	h.put(pos, a)
}

func (h alarms[T]) down(pos int) {
	a := h[pos]
	for {
		child := 2*pos + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if a.at <= h[child].at {
			break
		}
		h.put(pos, h[child])
		pos = child
	}
	h.put(pos, a)
}
