package batcher

// A node ties its owner into a ring. It lives inside the owner, so that linking allocates nothing
// and an owner that is cancelled leaves from the middle at once, without a search.
type node[E any] struct {
	of         *E
	prev, next *node[E] // both nil while in no ring
}

func (n *node[E]) linked() bool { return n.next != nil }

// A ring is a circular list with a moving start: a queue when it is pushed at the back and removed
// at the front, a round robin when turn is called. Its zero value is empty. It does not lock.
type ring[E any] struct {
	at  *node[E] // the front: whose turn it is; nil when empty
	len int
}

// front returns whose turn it is, nil when the ring is empty.
func (r *ring[E]) front() *E {
	if r.at == nil {
		return nil
	}
	return r.at.of
}

// push adds n behind all others.
func (r *ring[E]) push(n *node[E]) {
	if r.at == nil {
		n.prev, n.next = n, n
		r.at = n
	} else {
		n.prev, n.next = r.at.prev, r.at
		n.prev.next, n.next.prev = n, n
	}
	r.len++
}

// pushFront adds n before all others.
func (r *ring[E]) pushFront(n *node[E]) {
	r.push(n)
	r.at = n
}

// turn sends the front to the back.
func (r *ring[E]) turn() {
	if r.at != nil {
		r.at = r.at.next
	}
}

// remove takes n, which is in this ring, out of it.
func (r *ring[E]) remove(n *node[E]) {
	if r.len == 1 {
		r.at = nil
	} else {
		n.prev.next, n.next.prev = n.next, n.prev
		if r.at == n {
			r.at = n.next
		}
	}
	n.prev, n.next = nil, nil
	r.len--
}

// all yields every owner from the front on. The one just yielded may be removed.
func (r *ring[E]) all(yield func(*E) bool) {
	n := r.at
	for range r.len {
		next := n.next
		if !yield(n.of) {
			return
		}
		n = next
	}
}
