package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

const (
	// DefaultTimeout is the Timeout of Options that name none.
	DefaultTimeout = 5 * time.Second
	// DefaultIdleTimeout is the IdleTimeout of Options that name none. It is below the shortest
	// keep-alive that is common among servers and proxies, the five seconds of Node.js: a connection
	// that the server has closed is noticed only by a request that dies on it.
	DefaultIdleTimeout = 4 * time.Second
	// MaxReplyBytes is how much of a reply's body is read. A full reply of either service is far below.
	MaxReplyBytes = 1 << 20
	// maxReplyHeaderBytes bounds the header of a reply. Neither service comes near.
	maxReplyHeaderBytes = 64 << 10
	// pingAfter is how long an HTTP/2 connection may be silent before it is asked whether it lives.
	pingAfter = 15 * time.Second
)

// Options configure a [Client].
type Options struct {
	// Service names the peer in errors: "sqs", "pubsub", "gs". Required.
	Service string
	// Timeout limits a connection's coming about, the wait for the whole reply counted from the
	// last request byte written, and every stall while a request is being written. Zero means
	// DefaultTimeout.
	Timeout time.Duration
	// TLS is the base of the TLS configuration; nil means Go's defaults. It is cloned.
	TLS *tls.Config
	// MaxIdleConnsPerHost is how many idle connections to one host are kept. It should be at least
	// the number of requests in flight, or connections are made and thrown away under load. Zero
	// means 16.
	MaxIdleConnsPerHost int
	// IdleTimeout is how long an unused connection is kept. Zero means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// Dial replaces the dialler, for tests. It must honour ctx. Nil dials TCP and honours the
	// standard proxy environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY); with Dial set no proxy is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client sends requests. Use [New].
type Client struct {
	service string
	timeout time.Duration
	pool    *http.Transport // keeps connections
	fresh   *http.Transport // one connection for each request, for the resend
	dialer  dialer

	ctx    context.Context // ends at Close, and with it every request and dial
	cancel context.CancelFunc

	mu     sync.Mutex // guards closed against a Do that is about to join flight
	closed bool
	flight sync.WaitGroup // one for each Do
}

// errClosed is the cause of what fails because of Close.
var errClosed = errors.New("the client is closed")

// New returns a Client. It dials nothing and starts no goroutine.
func New(o Options) *Client {
	c := &Client{
		service: o.Service,
		timeout: cmp.Or(o.Timeout, DefaultTimeout),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	dial, proxy := o.Dial, func(*http.Request) (*url.URL, error) { return nil, nil }
	if dial == nil {
		dial = (&net.Dialer{Timeout: c.timeout, KeepAlive: 15 * time.Second}).DialContext
		proxy = proxyFromEnvironment
	}
	c.dialer = dialer{dial: dial, closing: c.ctx, open: make(map[*conn]struct{})}
	c.pool = &http.Transport{
		Proxy:               proxy,
		DialContext:         c.dialer.DialContext,
		TLSClientConfig:     o.TLS.Clone(),
		TLSHandshakeTimeout: c.timeout,
		MaxIdleConnsPerHost: cmp.Or(o.MaxIdleConnsPerHost, 16),
		IdleConnTimeout:     cmp.Or(o.IdleTimeout, DefaultIdleTimeout),
		// A compressed reply would have to be bounded twice, and replies are small.
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxReplyHeaderBytes,
		// A custom dialler or TLS configuration turns HTTP/2 off unless it is asked for.
		ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:  pingAfter,
			PingTimeout:      c.timeout,
			WriteByteTimeout: c.timeout,
		},
	}
	c.fresh = c.pool.Clone()
	c.fresh.DisableKeepAlives = true
	return c
}

// proxyFromEnvironment is http.ProxyFromEnvironment with errors that don't quote the variable, which
// may hold a password.
func proxyFromEnvironment(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errors.New("the proxy named by the environment (HTTPS_PROXY or HTTP_PROXY) is no valid proxy URL")
	}
	return u, nil
}

// Request is one HTTP request.
type Request struct {
	Method string // POST when empty
	URL    string // absolute, http or https
	// Header must not be changed afterwards: net/http may still be reading it when a request that was
	// given up has returned. Host and Content-Length are set here.
	Header http.Header
	// Body is sent as it is. Do doesn't touch it after it returned.
	Body []byte
}

// Reply is an answer, of any status.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte // at most MaxReplyBytes
	// Truncated is set when Body is not the whole body: it was longer than MaxReplyBytes, didn't end
	// within the timeout or broke off. Such a body proves nothing.
	Truncated bool
	// Err is why the body broke off; nil when it was only too long.
	Err error
}

// Do sends r and returns the answer. When ctx ends the request is given up at once, wherever it is:
// the error wraps ctx's cause and says whether the request had left.
//
// The error is a transient [*classify.Error] with the code "not_sent" or "no_reply" around an
// [*Error].
func (c *Client) Do(ctx context.Context, r *Request) (*Reply, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, c.fail(errClosed, false)
	}
	c.flight.Add(1)
	c.mu.Unlock()
	defer c.flight.Done()

	a := c.newAttempt(ctx, r)
	reply, err := a.send(c.pool)
	if err == nil {
		return reply, nil
	}
	sent := a.sent()
	if a.stale() {
		// Whatever closed this connection has probably closed its idle neighbours too.
		c.pool.CloseIdleConnections()
		a = c.newAttempt(ctx, r)
		if reply, err = a.send(c.fresh); err == nil {
			return reply, nil
		}
		sent = sent || a.sent()
	}
	return nil, c.fail(err, sent)
}

// newAttempt prepares one sending of r. It is over when send has returned.
func (c *Client) newAttempt(ctx context.Context, r *Request) *attempt {
	a := &attempt{client: c, caller: ctx, request: r, data: r.Body}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	return a
}

// Close takes no new requests, ends those in flight and the connections, and waits for them. Callers
// that want what is in flight to finish wait for it first. Calling it twice is fine.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.flight.Wait()
	c.dialer.closeAll()
	// The transports' own goroutines end with their connections; this tells those that wait in the
	// pool of nothing but a timer.
	c.pool.CloseIdleConnections()
	c.fresh.CloseIdleConnections()
}

// traceOf has a told what happens to its request.
func traceOf(a *attempt) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		// Each of the steps of a connection has the whole timeout to itself.
		ConnectStart:         func(string, string) { a.step(connecting) },
		TLSHandshakeStart:    func() { a.step(connecting) },
		GotConn:              a.gotConn,
		WroteRequest:         a.wroteRequest,
		GotFirstResponseByte: a.gotFirstByte,
	}
}
