package claim

import (
	"errors"
	"hash"
	"io"
	"sort"
)

// Object is a pack that is ready to be written: a key and its bytes, as segments of which the
// bodies are the caller's own. It is not changed after it is made, so any number of Readers may be
// used at once, as long as nobody changes the bodies.
type Object struct {
	key      string
	segments [][]byte
	ends     []int64 // ends[i] is the offset behind segments[i]
}

func newObject(key string, segments [][]byte) *Object {
	o := &Object{key: key, segments: segments, ends: make([]int64, len(segments))}
	var end int64
	for i, s := range segments {
		end += int64(len(s))
		o.ends[i] = end
	}
	return o
}

// Key returns the key under which the object is stored, see Ref.Key.
func (o *Object) Key() string { return o.key }

// Size returns the length of the object, in bytes.
func (o *Object) Size() int64 {
	if len(o.ends) == 0 {
		return 0
	}
	return o.ends[len(o.ends)-1]
}

// Reader returns a reader at the object's start. It reads from where the bodies lie and copies
// only into the caller's buffer. Each call returns a new one, for retries.
func (o *Object) Reader() *Reader { return &Reader{o: o} }

// WriteTo writes the whole object to w, one Write per segment.
func (o *Object) WriteTo(w io.Writer) (int64, error) { return o.Reader().WriteTo(w) }

// Sum adds the object's bytes to h, for the checksum that a store's confirmation is checked
// against.
func (o *Object) Sum(h hash.Hash) {
	for _, s := range o.segments {
		_, _ = h.Write(s) // a hash's Write never fails
	}
}

// AppendTo appends the whole object to dst, for a store that takes nothing but a slice.
func (o *Object) AppendTo(dst []byte) []byte {
	for _, s := range o.segments {
		dst = append(dst, s...)
	}
	return dst
}

// Reader reads an Object. It is an io.Reader, io.Seeker, io.WriterTo and io.ReaderAt, and like
// most readers it is for one goroutine at a time, ReadAt excepted.
type Reader struct {
	o  *Object
	at int64
}

// Read reads from the current position.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.ReadAt(p, r.at)
	r.at += int64(n)
	if n > 0 {
		err = nil // the end is told by the next call, once nothing is left
	}
	return n, err
}

// ReadAt reads len(p) bytes at off, fewer only at the object's end, and then says io.EOF.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errNegative
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := 0
	for i := r.o.segmentAt(off); i < len(r.o.segments) && n < len(p); i++ {
		s := r.o.segments[i]
		start := off + int64(n) - (r.o.ends[i] - int64(len(s)))
		n += copy(p[n:], s[start:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteTo writes what is left, one Write per segment.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for i := r.o.segmentAt(r.at); i < len(r.o.segments); i++ {
		s := r.o.segments[i]
		n, err := w.Write(s[r.at-(r.o.ends[i]-int64(len(s))):])
		r.at += int64(n)
		written += int64(n)
		if err != nil {
			return written, err
		}
		if r.at < r.o.ends[i] {
			return written, io.ErrShortWrite
		}
	}
	return written, nil
}

// Seek moves the position. A position behind the end is allowed and reads as the end.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.o.Size()
	default:
		return 0, errors.New("claim: invalid whence")
	}
	if offset < 0 {
		return 0, errNegative
	}
	r.at = offset
	return offset, nil
}

// Len returns how many bytes are left.
func (r *Reader) Len() int64 { return max(0, r.o.Size()-r.at) }

var errNegative = errors.New("claim: negative position")

// segmentAt returns the index of the segment that holds the byte at off, len(segments) when off is
// at or behind the end.
func (o *Object) segmentAt(off int64) int {
	return sort.Search(len(o.ends), func(i int) bool { return o.ends[i] > off })
}
