package output

import (
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// outageAfter is how long nothing may be delivered before it is said. Shorter troubles are what retries
// are for.
const outageAfter = 30 * time.Second

// outage says once when nothing has been delivered for a while, and once when it is over. Where order
// matters retries have no limit by default, so no error ever reaches the engine's log: without this a
// wrong endpoint looks like an idle pipeline.
type outage struct {
	log *service.Logger

	mu    sync.Mutex // guards the fields below
	since time.Time  // of the first failure after the last success; zero when all is well
	said  bool
}

// note takes the results of one send.
func (o *outage) note(errs []error) {
	var last *classify.Error
	for _, err := range errs {
		e := classify.Of(err)
		if e == nil || !e.Class.Retryable() {
			// Delivered, or answered for good: whoever answers is there.
			o.over()
			return
		}
		last = e
	}
	if last == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.since.IsZero() {
		o.since = now
	}
	if lasted := now.Sub(o.since); lasted >= outageAfter && !o.said {
		o.said = true
		o.log.Warnf("Nothing has been delivered for %v; messages wait and are retried. Last error: %v", lasted.Round(time.Second), last)
	}
}

// over ends an outage.
func (o *outage) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.said {
		o.log.Infof("Messages are delivered again, after %v", time.Since(o.since).Round(time.Second))
	}
	o.since, o.said = time.Time{}, false
}
