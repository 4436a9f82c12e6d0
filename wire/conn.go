package wire

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// dialer makes connections and remembers the open ones, because net/http closes only those that are
// idle, and finishes a dial whose request has been given up.
type dialer struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	closing context.Context // ends at Close

	mu   sync.Mutex // guards open
	open map[*conn]struct{}
}

// DialContext dials. Nothing is dialled, or stays open, once the client is closing.
func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(d.closing, func() { cancel(errClosed) })
	defer stop()
	inner, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, dialer: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Err() != nil {
		_ = inner.Close()
		return nil, errClosed
	}
	d.open[c] = struct{}{}
	return c, nil
}

func (d *dialer) closeAll() {
	d.mu.Lock()
	open := make([]*conn, 0, len(d.open))
	for c := range d.open {
		open = append(open, c)
	}
	d.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // it may be dead already, which is as good
	}
}

// conn counts what is written to a connection.
type conn struct {
	net.Conn
	dialer  *dialer
	written atomic.Int64
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// arrived returns how many bytes the peer has taken so far: what was written less what the local
// kernel still holds. It may lag behind, and it is the change that counts. Zero for nil.
func (c *conn) arrived() int64 {
	if c == nil {
		return 0
	}
	// The order matters: bytes written in between must not look as if they had arrived.
	written := c.written.Load()
	return written - unacknowledged(c.Conn)
}

// handed returns how many bytes were written to the connection so far. Zero for nil.
func (c *conn) handed() int64 {
	if c == nil {
		return 0
	}
	return c.written.Load()
}

// connOf finds the client's own connection under the layers of TLS that net/http puts on it.
func connOf(c net.Conn) *conn {
	for {
		switch v := c.(type) {
		case *conn:
			return v
		case interface{ NetConn() net.Conn }:
			c = v.NetConn()
		default:
			return nil
		}
	}
}
