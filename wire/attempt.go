package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// phase is what an attempt waits for.
type phase uint8

const (
	connecting phase = iota // for a connection
	writing                 // for the request to leave
	replying                // for the reply, to its last byte
)

// timeoutError is the cause of an attempt that its own timer ended.
type timeoutError struct {
	phase phase
	limit time.Duration
}

func (e *timeoutError) Error() string {
	switch e.phase {
	case connecting:
		return fmt.Sprintf("no connection within %v", e.limit)
	case writing:
		return fmt.Sprintf("the request stalled for %v while it was being written", e.limit)
	default:
		return fmt.Sprintf("no complete reply within %v of the request", e.limit)
	}
}

// Timeout lets the error pass for a net.Error's.
func (e *timeoutError) Timeout() bool { return true }

// attempt is one sending of a request: its timer, and what the transport told of it. The transport
// calls it from goroutines of its own, some of them after RoundTrip has returned.
type attempt struct {
	client  *Client
	caller  context.Context // the caller's, to tell its end from the timer's
	ctx     context.Context
	cancel  context.CancelCauseFunc
	request *Request

	mu      sync.Mutex // guards the fields below; never held across a read or write of a connection
	data    []byte     // the body; nil once the attempt is over, so that nobody reads a pooled buffer
	over    bool
	phase   phase
	timer   *time.Timer
	conn    *conn // the connection in use; nil where it isn't ours to ask
	arrived int64 // what conn had delivered when the timer was set
	due     int64 // what it will have delivered when ours is there
	reused  bool
	wrote   bool // the whole request
	heard   bool // a byte of a reply
}

// send makes the round trip and reads the reply.
func (a *attempt) send(t *http.Transport) (*Reply, error) {
	defer a.finish()
	stop := context.AfterFunc(a.client.ctx, func() { a.cancel(errClosed) })
	defer stop()

	r, err := a.newRequest()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.timer = time.AfterFunc(a.client.timeout, a.expired)
	a.mu.Unlock()

	resp, err := t.RoundTrip(r)
	if err != nil {
		// The transport reports a cancellation in several ways; the cause says why.
		if cause := context.Cause(a.ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	a.step(replying) // for a server that answers before it has read everything
	reply := &Reply{Status: resp.StatusCode, Header: resp.Header}
	reply.Body, reply.Err = readBody(resp)
	if len(reply.Body) > MaxReplyBytes {
		reply.Body, reply.Truncated, reply.Err = reply.Body[:MaxReplyBytes], true, nil
	}
	if reply.Err != nil {
		reply.Truncated = true
		if cause := context.Cause(a.ctx); cause != nil {
			reply.Err = cause
			if _, own := errors.AsType[*timeoutError](cause); !own {
				return nil, cause // given up by the caller or by Close
			}
		}
	}
	return reply, nil
}

// readBody reads one byte more than is allowed, to learn whether there is more. It reads to the end
// even of a body whose length is known, or the connection couldn't be used again.
func readBody(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	limited := io.LimitReader(resp.Body, MaxReplyBytes+1)
	n := resp.ContentLength
	if n < 0 || n > MaxReplyBytes || resp.Request.Method == http.MethodHead {
		return io.ReadAll(limited)
	}
	b := make([]byte, n+1)
	read, err := io.ReadFull(limited, b)
	if int64(read) == n && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		err = nil
	}
	return b[:read], err
}

// newRequest builds the transport's request around the attempt.
func (a *attempt) newRequest() (*http.Request, error) {
	u, err := url.Parse(a.request.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("the request's URL is no absolute URL")
	}
	// A default port is dropped here and by everybody who signs, so that the host that is signed is
	// the host on the wire.
	if p := u.Port(); p == "443" && u.Scheme == "https" || p == "80" && u.Scheme == "http" {
		u.Host = u.Host[:len(u.Host)-len(p)-1]
	}
	method := a.request.Method
	if method == "" {
		method = http.MethodPost
	}
	header := a.request.Header
	if header == nil {
		header = http.Header{}
	}
	r := (&http.Request{
		Method: method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(httptrace.WithClientTrace(a.ctx, traceOf(a)))
	if len(a.data) == 0 {
		r.Body = http.NoBody
		return r, nil
	}
	r.ContentLength = int64(len(a.data))
	r.Body = &body{attempt: a}
	// net/http sends again by itself only what never left; for that it needs the body anew.
	r.GetBody = func() (io.ReadCloser, error) { return &body{attempt: a}, nil }
	return r, nil
}

// finish ends the timer and the transport's access to the body.
func (a *attempt) finish() {
	a.mu.Lock()
	a.over = true
	a.data = nil
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.cancel(nil)
}

// step says that the attempt got on: the timer begins anew. A reply's time, once it runs, is not
// prolonged by anything.
func (a *attempt) step(p phase) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stepLocked(p)
}

func (a *attempt) stepLocked(p phase) {
	if a.over || a.phase == replying || a.timer == nil || p < a.phase {
		return
	}
	a.phase = p
	a.arrived, a.due = a.conn.arrived(), a.conn.handed()
	if p == writing {
		a.due += maxChunkBytes
	}
	a.timer.Reset(a.client.timeout)
}

// maxChunkBytes is the most that a transport writes of a body between two reads of it, generously.
const maxChunkBytes = 64 << 10

// expired runs when the timer does. A request whose bytes still trickle into the peer hasn't stalled,
// and its reply can't be due yet. Only bytes up to its own count: on HTTP/2 others share the connection,
// and their traffic would keep a mute request alive for ever.
func (a *attempt) expired() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	if !a.heard && a.arrived < a.due {
		if now := a.conn.arrived(); now > a.arrived {
			a.arrived = now
			a.timer.Reset(a.client.timeout)
			return
		}
	}
	p := a.phase
	if p == replying && !a.wrote && !a.heard {
		p = writing
	}
	a.cancel(&timeoutError{phase: p, limit: a.client.timeout})
}

func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn, a.reused = connOf(info.Conn), info.Reused
	// A second connection, taken by net/http for what never left on the first, begins anew.
	a.wrote, a.heard = false, false
	if a.phase == replying {
		a.phase = writing
	}
	a.stepLocked(writing)
}

func (a *attempt) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrote = true
	a.stepLocked(replying)
}

func (a *attempt) gotFirstByte() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = true
}

// sent reports whether the whole request left.
func (a *attempt) sent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrote
}

// stale reports whether the failed attempt died of a connection that had been idle too long, rather
// than of a timeout, of its caller or of Close.
func (a *attempt) stale() bool {
	if a.caller.Err() != nil || a.client.ctx.Err() != nil {
		return false
	}
	if _, own := errors.AsType[*timeoutError](context.Cause(a.ctx)); own {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reused && !a.heard
}

// body is the request's body as the transport reads it. Each read is a sign that what was read before
// has gone on its way.
type body struct {
	*attempt
	off    int
	closed bool
}

var errOver = errors.New("the request is over")

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.closed {
		return 0, errOver
	}
	if b.off == len(b.data) {
		return 0, io.EOF
	}
	n := copy(p, b.data[b.off:])
	b.off += n
	b.stepLocked(writing)
	return n, nil
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}
