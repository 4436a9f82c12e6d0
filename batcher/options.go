package batcher

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// What New and NewSet use where an option is zero. MaxElapsedTime and MaxRetries have no place
// here: their zero is a setting of its own.
const (
	DefaultLinger          = 20 * time.Millisecond
	DefaultMaxRequests     = 8
	DefaultQueueMax        = 4096
	DefaultQueueMaxBytes   = 128 << 20
	DefaultQueueTenantMax  = 1024
	DefaultInitialInterval = 100 * time.Millisecond
	DefaultMaxInterval     = 10 * time.Second
	DefaultCancelGrace     = 2 * time.Second
	DefaultIdleTimeout     = time.Minute
)

// DefaultMaxElapsedTime is what an output without order passes as MaxElapsedTime. It is not
// applied here, because zero means no limit.
const DefaultMaxElapsedTime = 30 * time.Second

// Options are the limits and habits of one Batcher, or of each Batcher of a Set.
type Options struct {
	// MaxEntries is how many entries a request holds at most. Required, 1 or more.
	MaxEntries int
	// MaxBytes is how many bytes, summed over Entry.Size, a request holds at most. An entry that is
	// larger travels alone. Zero means no limit.
	MaxBytes int
	// MaxWireBytes is the same for Entry.WireSize plus RequestWireBytes, for services that also
	// limit the encoded request. Zero means no limit.
	MaxWireBytes int
	// RequestWireBytes is what a request costs on the wire besides its entries.
	RequestWireBytes int

	// Linger is how long a request that is not full waits, counted from the admission of its
	// oldest entry that could leave. Longer means fewer, fuller requests and later delivery.
	// Zero means DefaultLinger.
	Linger time.Duration
	// MaxRequests is how many requests of one queue are in flight at most. Throttling lowers the
	// number for a while. Zero means DefaultMaxRequests.
	MaxRequests int
	// MaxInFlight is how many Submit calls the caller makes at once. When that many wait for
	// results with all their entries admitted, nobody is left who could add to a request, and
	// every queue flushes. Zero means that it is not known, and linger alone decides.
	MaxInFlight int

	// ManyQueues says that the callers are shared by several queues. When the service asks queues to
	// wait for longer than MaxElapsedTime, half of MaxInFlight Submits, rounded down, sit that out, in
	// all such queues together, and the others fail at once, throttled (code "paused"). It needs both
	// of these limits. False lets all sit it out.
	ManyQueues bool

	// QueueMax, QueueMaxBytes (of Entry.Size) and QueueTenantMax are the ceilings of what waits in
	// one queue: of all entries, of their bytes, and of the entries of one tenant. An entry that
	// does not fit waits in Submit; one larger than QueueMaxBytes waits until the queue is empty.
	// Entries in flight do not count, entries that wait for a retry do: they come back even when
	// their room has been taken, so at most MaxRequests requests wait beyond the ceiling.
	// Zero means DefaultQueueMax, DefaultQueueMaxBytes, DefaultQueueTenantMax.
	QueueMax       int
	QueueMaxBytes  int
	QueueTenantMax int

	// OneGroupPerRequest puts the entries of one group only into a request, or entries without a
	// group: Pub/Sub takes one ordering key per request.
	OneGroupPerRequest bool
	// StrictOrder puts at most one entry of a group into a request, so that a request that fails
	// in part cannot reorder a group.
	StrictOrder bool

	// MaxRetries is how often an entry is sent again after throttled and transient failures.
	// Zero means no count limit.
	MaxRetries int
	// InitialInterval and MaxInterval bound the wait before retry n (the first is 0): a full-jitter
	// draw between 0 and min(MaxInterval, InitialInterval·2^n), at least the service's Retry-After.
	// Zero means DefaultInitialInterval, DefaultMaxInterval.
	InitialInterval time.Duration
	MaxInterval     time.Duration
	// MaxElapsedTime ends retries, counted from the entry's first send. A draw that would pass it
	// is cut to it. An entry that fails while its queue is paused beyond it, or whose Retry-After
	// would pass it, is not retried; one that waits for its retry when it is over fails then, or after
	// one more try if it waited for a request of its group. Zero means no limit.
	MaxElapsedTime time.Duration

	// CancelGrace is how long a cancelled Submit awaits what has left. Zero means
	// DefaultCancelGrace; outputs pass min(timeout, DefaultCancelGrace).
	CancelGrace time.Duration
	// IdleTimeout is how long a Set keeps a queue that nobody uses. Zero means DefaultIdleTimeout.
	IdleTimeout time.Duration

	// Observer hears about retries and what waits. Nil means nobody does.
	Observer Observer
	// Jitter returns the next draw, at least 0 and below 1. It is called with a lock held, so it
	// must be quick and call nothing of this package. Nil means math/rand/v2.
	Jitter func() float64
}

// An Observer keeps the metrics of all queues of an output. Amounts are changes, not totals, so
// one Observer can add up many queues. Calls come from any goroutine, without a lock held.
type Observer interface {
	// Waiting says that the entries waiting (for room in a request or for a retry) and the sum of
	// their Size have changed.
	Waiting(entries, bytes int)
	// Held says that the number of groups that wait for a retry has changed.
	Held(groups int)
	// Retried says that entries failed with class and will be sent again.
	Retried(class classify.Class, entries int)
}

// withDefaults fills in what is zero and refuses what can't be.
func (o Options) withDefaults() (Options, error) {
	o.Linger = cmp.Or(o.Linger, DefaultLinger)
	o.MaxRequests = cmp.Or(o.MaxRequests, DefaultMaxRequests)
	o.QueueMax = cmp.Or(o.QueueMax, DefaultQueueMax)
	o.QueueMaxBytes = cmp.Or(o.QueueMaxBytes, DefaultQueueMaxBytes)
	o.QueueTenantMax = cmp.Or(o.QueueTenantMax, DefaultQueueTenantMax)
	o.InitialInterval = cmp.Or(o.InitialInterval, DefaultInitialInterval)
	o.MaxInterval = cmp.Or(o.MaxInterval, DefaultMaxInterval)
	o.CancelGrace = cmp.Or(o.CancelGrace, DefaultCancelGrace)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	for _, f := range []struct {
		name       string
		value, min int64
	}{
		{"MaxEntries", int64(o.MaxEntries), 1},
		{"MaxBytes", int64(o.MaxBytes), 0},
		{"MaxWireBytes", int64(o.MaxWireBytes), 0},
		{"RequestWireBytes", int64(o.RequestWireBytes), 0},
		{"Linger", int64(o.Linger), 1},
		{"MaxRequests", int64(o.MaxRequests), 1},
		{"MaxInFlight", int64(o.MaxInFlight), 0},
		{"QueueMax", int64(o.QueueMax), 1},
		{"QueueMaxBytes", int64(o.QueueMaxBytes), 1},
		{"QueueTenantMax", int64(o.QueueTenantMax), 1},
		{"MaxRetries", int64(o.MaxRetries), 0},
		{"InitialInterval", int64(o.InitialInterval), 1},
		{"MaxInterval", int64(o.MaxInterval), int64(o.InitialInterval)},
		{"MaxElapsedTime", int64(o.MaxElapsedTime), 0},
		{"CancelGrace", int64(o.CancelGrace), 1},
		{"IdleTimeout", int64(o.IdleTimeout), 1},
	} {
		if f.value < f.min {
			return o, fmt.Errorf("batcher: %s is %d, must be at least %d", f.name, f.value, f.min)
		}
	}
	if o.MaxWireBytes > 0 && o.RequestWireBytes >= o.MaxWireBytes {
		return o, fmt.Errorf("batcher: RequestWireBytes is %d, must be below MaxWireBytes, %d", o.RequestWireBytes, o.MaxWireBytes)
	}
	return o, nil
}
