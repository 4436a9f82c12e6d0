package output

import (
	"sync"

	"github.com/ankusa-connect/ankusa-connect/message"
)

// maxPooledBytes is the largest buffer that is kept for the next request. One of a few huge messages
// would otherwise stay for the life of the process.
const maxPooledBytes = 16 << 20

// requests makes what a client sends of items: a client's own message type E, with attributes of its
// own type A, because the clients know nothing of this program's messages. Buffers are reused.
type requests[A, E any] struct {
	attribute func(message.Attribute) A
	entry     func(it *item, body []byte, attributes []A) E
	pool      sync.Pool // of *request[A, E]
}

// request is the scratch space of one request: its messages, one behind the other, and its entries.
type request[A, E any] struct {
	bytes      []byte
	attributes []A
	entries    []E
}

// encode encodes items. The result is valid until it is given to free.
func (r *requests[A, E]) encode(items []*item) *request[A, E] {
	b, _ := r.pool.Get().(*request[A, E])
	if b == nil {
		b = new(request[A, E])
	}
	size, attributes := 0, 0
	for _, it := range items {
		if it.decoded == nil {
			size += it.messageSize()
		}
		attributes += len(it.attributes)
	}
	// Entries point into these two, so they must not move while they grow.
	if cap(b.bytes) < size {
		b.bytes = make([]byte, 0, size)
	}
	if cap(b.attributes) < attributes {
		b.attributes = make([]A, 0, attributes)
	}
	for _, it := range items {
		body := it.raw // passed on as it came, without a copy
		if it.decoded == nil {
			start := len(b.bytes)
			b.bytes = it.hook.AppendTo(b.bytes)
			body = b.bytes[start:]
		}
		start := len(b.attributes)
		for _, a := range it.attributes {
			b.attributes = append(b.attributes, r.attribute(a))
		}
		b.entries = append(b.entries, r.entry(it, body, b.attributes[start:]))
	}
	return b
}

// free gives the scratch space back, without what it pointed to.
func (r *requests[A, E]) free(b *request[A, E]) {
	if cap(b.bytes) > maxPooledBytes {
		return
	}
	clear(b.entries)
	clear(b.attributes)
	b.bytes, b.attributes, b.entries = b.bytes[:0], b.attributes[:0], b.entries[:0]
	r.pool.Put(b)
}
