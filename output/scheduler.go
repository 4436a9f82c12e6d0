package output

import (
	"github.com/ankusa-connect/ankusa-connect/batcher"
	"github.com/ankusa-connect/ankusa-connect/config"
)

// schedulerOptions are the options that both outputs give their scheduler. queue is the field that says
// where a message goes.
func schedulerOptions(c config.Common, queue *field, m *metrics) batcher.Options {
	o := batcher.Options{
		MaxEntries:      c.Batch.MaxEntries,
		MaxBytes:        c.Batch.MaxBytes,
		Linger:          c.Batch.Linger,
		MaxRequests:     c.Batch.MaxRequests,
		MaxInFlight:     c.MaxInFlight,
		ManyQueues:      !queue.static,
		QueueMax:        c.Batch.QueueMax,
		QueueMaxBytes:   c.Batch.QueueMaxBytes,
		QueueTenantMax:  c.Batch.QueueTenantMax,
		StrictOrder:     c.Batch.StrictOrder,
		MaxRetries:      c.Retry.MaxRetries,
		InitialInterval: c.Retry.InitialInterval,
		MaxInterval:     c.Retry.MaxInterval,
		MaxElapsedTime:  c.Retry.MaxElapsedTime,
		CancelGrace:     min(c.Timeout, maxAwait),
		Observer:        m,
	}
	if !c.Batch.Enabled {
		o.MaxEntries = 1
	}
	return o
}
