package batcher

import (
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A load is an amount of entries, as limits count it.
type load struct{ entries, bytes, wire int }

func (l *load) add(m load) { l.entries += m.entries; l.bytes += m.bytes; l.wire += m.wire }
func (l *load) sub(m load) { l.entries -= m.entries; l.bytes -= m.bytes; l.wire -= m.wire }

func (e *Entry[T]) load() load { return load{1, e.Size, e.WireSize} }

// An item is an admitted entry that has no result yet.
type item[T any] struct {
	call   *call[T]
	index  int // of its entry and its result
	tenant *tenant[T]
	lane   *lane[T] // its group's, else its tenant's own
	state  itemState

	leaveBy   time.Duration // when it has lingered enough; 0 for a retry, which lingers no more
	firstSent time.Duration // never until it first leaves
	tries     int           // failed tries that count
	again     time.Duration // when its retry is due
	expires   time.Duration // when a retry that waits is given up; never without a limit
	last      *classify.Error

	inLane node[item[T]] // while it waits
	inCall node[item[T]] // always
	retry  alarm[T]      // of a retry without a group: when it is due, then when it expires
}

type itemState uint8

const (
	itemWaiting itemState = iota // in its lane
	itemParked                   // without a group, until its retry is due
	itemSent                     // in a request
)

func (it *item[T]) entry() *Entry[T] { return &it.call.sub.entries[it.index] }

// expired reports whether a retry has waited for too long.
func (it *item[T]) expired(now time.Duration) bool { return it.expires != never && it.expires <= now }

// waitLocked counts an item among those that wait.
func (b *Batcher[T]) waitLocked(it *item[T]) {
	e := it.entry()
	b.waiting.add(e.load())
	it.tenant.waiting++
	b.told.entries++
	b.told.bytes += e.Size
}

// leaveLocked takes an item out of where it waits and gives its room back. The caller places the
// lane.
func (b *Batcher[T]) leaveLocked(it *item[T]) {
	e := it.entry()
	if it.state == itemWaiting {
		l := it.lane
		l.items.remove(&it.inLane)
		l.load.sub(e.load())
		if it.last != nil && l.group != "" {
			l.retries--
		}
	}
	b.alarms.set(&it.retry, never)
	b.waiting.sub(e.load())
	b.told.entries--
	b.told.bytes -= e.Size
	t := it.tenant
	t.waiting--
	if t.line.len > 0 && !t.roomy.linked() {
		b.roomy.push(&t.roomy)
	}
}

func (b *Batcher[T]) newItemLocked() *item[T] {
	it := take(&b.freeItems)
	if it == nil {
		it = &item[T]{}
		it.inLane.of, it.inCall.of = it, it
		it.retry = alarm[T]{at: never, item: it}
	}
	it.state, it.firstSent, it.expires, it.tries = itemWaiting, never, never, 0
	return it
}

// take pops from a free list, nil when it is empty.
func take[E any](free *[]*E) *E {
	last := len(*free) - 1
	if last < 0 {
		return nil
	}
	e := (*free)[last]
	(*free)[last] = nil
	*free = (*free)[:last]
	return e
}
