package localcloud

import "time"

// Gauge measures how many of something are in flight: now, at most, and on average over the time
// in which at least one is. The zero value is ready. It has no lock: its owner's guards it.
type Gauge struct {
	now, max int
	last     time.Time     // of the latest Enter or Leave
	area     time.Duration // sum of count × time
	busy     time.Duration // time with at least one
}

// Enter adds one at t. Times must not run backwards; one that does counts as no time passed.
func (g *Gauge) Enter(t time.Time) {
	g.advance(t)
	g.now++
	g.max = max(g.max, g.now)
}

// Leave takes one away at t.
func (g *Gauge) Leave(t time.Time) {
	g.advance(t)
	g.now--
}

// Restart forgets the past: Max is what is in flight now, Average starts anew.
func (g *Gauge) Restart() { g.max, g.area, g.busy = g.now, 0, 0 }

// Now is the number in flight.
func (g *Gauge) Now() int { return g.now }

// Max is the largest number that was ever in flight.
func (g *Gauge) Max() int { return g.max }

// Average is the mean number in flight over the time in which at least one was, up to the latest
// Enter or Leave; zero when no time has passed.
func (g *Gauge) Average() float64 {
	if g.busy == 0 {
		return 0
	}
	return float64(g.area) / float64(g.busy)
}

func (g *Gauge) advance(t time.Time) {
	if d := t.Sub(g.last); g.now > 0 && d > 0 {
		g.area += time.Duration(g.now) * d
		g.busy += d
	}
	if t.After(g.last) {
		g.last = t
	}
}
