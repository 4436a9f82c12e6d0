// Package buffer lends the buffers in which a pack is laid out contiguously for an HTTP client
// that sends nothing else.
package buffer

import "sync"

// maxKept bounds the buffers that are kept for the next: one hook of a hundred megabytes must not
// hold that much for the rest of the day.
const maxKept = 4 << 20

var pool = sync.Pool{New: func() any { return new([]byte) }}

// Get returns an empty buffer with room for n bytes.
func Get(n int64) *[]byte {
	b := pool.Get().(*[]byte)
	if int64(cap(*b)) < n {
		*b = make([]byte, 0, n)
	}
	*b = (*b)[:0]
	return b
}

// Put takes a buffer back. Nobody may use it any more.
func Put(b *[]byte) {
	if cap(*b) <= maxKept {
		pool.Put(b)
	}
}
