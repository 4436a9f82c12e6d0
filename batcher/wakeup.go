package batcher

import (
	"sync"
	"time"
)

// A wakeup is an owner's only timer. When it fires it only says "look again": the owner decides by
// the clock and its own state, so one that fires late, early or twice changes nothing, and no one
// has to win a race against Stop.
//
// An armed timer and a callback that has begun count in wg, so that whoever waits for wg after
// stop finds no callback left. All methods need the owner's lock; none is called after its Close
// has begun, except stop.
type wakeup struct {
	wg    *sync.WaitGroup
	look  func() // takes the owner's lock
	timer *time.Timer
	armed bool
	at    time.Duration // when it fires, on the owner's clock; means nothing unless armed
}

// set sees to it that look is called at the time at, or earlier. A timer that is already armed for
// an earlier moment stays: it will fire, find nothing and be set again, which is cheaper than
// moving it with every entry.
func (w *wakeup) set(at, now time.Duration) {
	if w.armed && w.at <= at {
		return
	}
	w.armed, w.at = true, at
	if w.timer == nil {
		w.wg.Add(1)
		w.timer = time.AfterFunc(at-now, w.fire)
	} else if !w.timer.Reset(at - now) { // true: the count of the moved one goes on
		w.wg.Add(1)
	}
}

// fired notes, under the owner's lock, that look runs: the timer has to be set anew.
func (w *wakeup) fired(now time.Duration) {
	// A callback that was overtaken by Reset must not disown the timer that is armed now.
	if w.armed && w.at <= now {
		w.armed = false
	}
}

func (w *wakeup) fire() {
	defer w.wg.Done()
	w.look()
}

func (w *wakeup) stop() {
	if w.timer != nil && w.timer.Stop() {
		w.wg.Done()
	}
	w.armed = false
}
