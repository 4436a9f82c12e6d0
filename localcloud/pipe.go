package localcloud

import (
	"context"
	"net"
	"sync"
)

// PipeListener is a net.Listener whose connections are net.Pipe pairs. Give its DialContext to an
// http.Transport and its Accept to a server, and client and server meet in memory: no socket, so
// the clock of a testing/synctest bubble keeps running.
//
// A pipe has no buffer. A write waits for the other side's read, so a server that does not read
// stalls its client at once, not after a socket's buffers are full.
type PipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipeListener returns a listener that is open until Close.
func NewPipeListener() *PipeListener {
	return &PipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// DialContext connects to the listener whatever network and address are; it fits
// http.Transport.DialContext. It fails with ctx's error when nobody accepts before ctx ends, and
// with a *net.OpError around net.ErrClosed once the listener is closed.
func (l *PipeListener) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	select { // a closed listener must not win a race against a waiting Accept
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	default:
	}
	client, server := net.Pipe()
	var err error
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = client.Close()
	_ = server.Close()
	return nil, &net.OpError{Op: "dial", Net: "pipe", Err: err}
}

// Accept returns the server's end of the next connection, or net.ErrClosed after Close.
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept and DialContext fail. Connections already made live on. Twice is fine.
func (l *PipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a placeholder: an in-memory listener has no address.
func (l *PipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
