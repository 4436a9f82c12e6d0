package batcher

import "context"

// An Entry is one message on its way to a queue.
type Entry[T any] struct {
	// Value is handed to the SendFunc as it is. After a Submit that returned early, because its
	// ctx ended, a request may still be reading it.
	Value T
	// Queue names the queue or topic. A Set opens one Batcher for each; a Batcher ignores it.
	Queue string
	// Tenant is who takes turns: requests are filled round robin across tenants. Empty is a tenant
	// like any other.
	Tenant string
	// Group is what has order: see the package comment. Empty means no order.
	Group string
	// Size counts towards Options.MaxBytes and QueueMaxBytes, WireSize towards MaxWireBytes.
	// Bytes, not negative.
	Size, WireSize int
}

// SendFunc sends values to queue in one request and returns one result per value, in their order:
// nil when the service has taken the value, else an error of which classify.Of gives the class. A
// missing result counts as transient, a surplus one is ignored, and so does a panic count as a
// transient failure of every value. A *classify.Error with the code CodeHeld says that the value
// was not sent, because an earlier one of its group failed.
//
// SendFunc is called on the Batcher's goroutines, several at once, never with a lock held. It must
// not keep values after it returns. ctx ends when Close is forced, or has begun and no Submit awaits a
// result any more; never because a Submit was cancelled: others may share the request.
type SendFunc[T any] func(ctx context.Context, queue string, values []T) []error
