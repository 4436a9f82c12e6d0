package output

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// messageError is one message's failure as the engine gets it. It reads as its cause and unwraps to
// both the cause and the batch error of the write it belongs to.
//
// The second part is what keeps a nack precise. The engine's own batching layer hands one error to
// each upstream transaction: the error of one of its messages. When the transaction holds several
// messages, the engine looks in that error for a batch error, to learn which of them failed. Without
// one it takes them all for failed, and two refused messages of ten become ten sent again.
type messageError struct {
	cause error
	batch *service.BatchError
}

func (e *messageError) Error() string   { return e.cause.Error() }
func (e *messageError) Unwrap() []error { return []error{e.cause, e.batch} }

// headlineError speaks for the whole batch. It never unwraps to the batch error, which holds it: that
// would be a circle for whoever walks the chain.
type headlineError struct {
	failed, total int
	first         error
}

func (e *headlineError) Error() string {
	// For a batch of one the engine takes the headline for the message's own error, and the text of
	// that one begins with its class.
	if e.total == 1 {
		return e.first.Error()
	}
	return fmt.Sprintf("%d of %d messages failed; first: %v", e.failed, e.total, e.first)
}

func (e *headlineError) Unwrap() error { return e.first }

// batchError reports the results of a batch: nil when there is no failure, else a *service.BatchError
// that marks exactly the failed indexes. results has one element per message of the batch.
func batchError(batch service.MessageBatch, results []error) error {
	failed := 0
	var first error
	for _, err := range results {
		if err != nil {
			if failed++; first == nil {
				first = err
			}
		}
	}
	if failed == 0 {
		return nil
	}
	out := service.NewBatchError(batch, &headlineError{failed: failed, total: len(batch), first: first})
	for i, err := range results {
		if err != nil {
			out.Failed(i, &messageError{cause: err, batch: out})
		}
	}
	return out
}
