package batcher

import (
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// A pace slows a whole queue down when the service throttles it: what other entries are waiting
// would be throttled too, and feed the storm.
//
// A throttled request halves the number of requests in flight and pauses the queue, for a full
// jitter draw that doubles with each throttled round and at least for the service's Retry-After. A
// full window of sound requests adds one to the number again. Requests that left before the last
// halving tell nothing new and change neither, or one burst of eight would mean one in flight.
type pace struct {
	window      int             // requests in flight at most, 1 … MaxRequests
	pausedUntil time.Duration   // nothing leaves before
	notBefore   time.Duration   // the part of it that the service asked for
	why         *classify.Error // the answer that asked for it
	cut         uint64          // the last request that left before the last halving
	sound       int             // sound requests since the window last changed
	rounds      int             // throttled rounds in a row
}

// settled learns from the results of request seq, and returns the draw for its retries. last is the
// last request that has left.
func (p *pace) settled(seq, last uint64, results []*classify.Error, o *Options, now time.Duration) (draw float64) {
	var throttled, failed bool
	var asked *classify.Error // for the longest wait
	var retryAfter time.Duration
	for _, e := range results {
		if e == nil {
			continue
		}
		switch e.Class {
		case classify.Throttled:
			throttled = true
			if e.RetryAfter > retryAfter {
				asked, retryAfter = e, e.RetryAfter
			}
		case classify.Transient:
			failed = true
		}
	}
	if throttled || failed {
		draw = o.Jitter()
	}
	switch fresh := seq > p.cut; {
	case throttled:
		if fresh {
			p.window = max(1, p.window/2)
			p.cut, p.sound = last, 0
			p.rounds++
		}
		p.pausedUntil = max(p.pausedUntil, now+max(retryAfter, o.backoff(max(0, p.rounds-1), draw)))
		if asked != nil && now+retryAfter > p.notBefore {
			p.notBefore, p.why = now+retryAfter, asked
		}
	case fresh && !failed:
		p.rounds = 0
		if p.sound++; p.sound >= p.window && p.window < o.MaxRequests {
			p.window++
			p.sound = 0
		}
	}
	return draw
}

// tooLong reports whether the service asks to wait for longer than retries may take.
func (p *pace) tooLong(o *Options, now time.Duration) bool {
	return o.MaxElapsedTime > 0 && p.notBefore-now > o.MaxElapsedTime
}

// refusal is what entries fail with that may not wait that long.
func (p *pace) refusal(o *Options, now time.Duration) *classify.Error {
	return paused(p.notBefore-now, o.MaxElapsedTime, p.why)
}
