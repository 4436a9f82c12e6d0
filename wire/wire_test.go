package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClient(t *testing.T, o wire.Options) *wire.Client {
	t.Helper()
	if o.Service == "" {
		o.Service = "sqs"
	}
	c := wire.New(o)
	t.Cleanup(c.Close)
	return c
}

// serve runs handle for each connection, numbered from 1, of a loopback listener and returns its URL.
func serve(t *testing.T, handle func(n int32, c *net.TCPConn, r *bufio.Reader)) (string, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int32
	done := make(chan struct{})
	go func() { // ends when the listener is closed
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := count.Add(1)
			go func() { // ends with its connection
				defer c.Close()
				handle(n, c.(*net.TCPConn), bufio.NewReader(c))
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String() + "/", &count
}

// piped is serve for a synctest bubble, whose clock a socket would stop: it runs handle for each connection
// that dial makes, and waits for them when the test ends.
func piped(t *testing.T, handle func(n int32, c net.Conn, r *bufio.Reader)) (dial func(context.Context, string, string) (net.Conn, error), count *atomic.Int32) {
	count = new(atomic.Int32)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait) // after the client's Close
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		n := count.Add(1)
		wg.Go(func() { // ends with its connection
			defer server.Close()
			handle(n, server, bufio.NewReader(server))
		})
		return client, nil
	}, count
}

func readRequest(r *bufio.Reader) ([]byte, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(req.Body)
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	e, isClassified := errors.AsType[*classify.Error](err)
	if !isClassified || e.Class != classify.Transient || e.Code != code || e.Service != "sqs" {
		t.Fatalf("error = %v, want a transient sqs error with code %s", err, code)
	}
	if got, want := wire.Unknown(err), code == wire.CodeNoReply; got != want {
		t.Errorf("Unknown(%v) = %v, want %v", err, got, want)
	}
}

func TestEveryStatusIsAReply(t *testing.T) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.Header().Set("X-Got", r.Header.Get("X-Sent")+string(body))
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
		io.WriteString(w, "answer")
	}))
	t.Cleanup(s.Close)
	c := newClient(t, wire.Options{})
	for i, status := range []int{200, 307, 308, 302, 400, 403, 429, 500, 503} {
		reply, err := c.Do(t.Context(), &wire.Request{
			URL: fmt.Sprintf("%s/%d", s.URL, status), Header: http.Header{"X-Sent": {"a"}}, Body: []byte("b"),
		})
		if err != nil {
			t.Fatalf("%d: %v", status, err)
		}
		if reply.Status != status || string(reply.Body) != "answer" || reply.Header.Get("X-Got") != "ab" || reply.Truncated {
			t.Errorf("%d: reply = %+v", status, reply)
		}
		if got := int(hits.Load()); got != i+1 {
			t.Fatalf("%d: the server saw %d requests, want %d: a redirect was followed", status, got, i+1)
		}
	}
}

func TestConnectionRefusedIsNotSent(t *testing.T) {
	_, err := newClient(t, wire.Options{}).Do(t.Context(), &wire.Request{URL: "http://127.0.0.1:" + peers.FreePort(t), Body: []byte("x")})
	wantCode(t, err, wire.CodeNotSent)
	if !strings.Contains(err.Error(), "refused") {
		t.Errorf("error = %v, want the cause in it", err)
	}
}

func TestNoURLIsNotSent(t *testing.T) {
	for _, u := range []string{"", "/path", "http://", "://x", "http://h\x7f/"} {
		_, err := newClient(t, wire.Options{}).Do(t.Context(), &wire.Request{URL: u})
		wantCode(t, err, wire.CodeNotSent)
	}
}

// The server closes what has been idle and the client learns it only from the request that dies.
func TestRequestOnStaleConnectionIsResentOnce(t *testing.T) {
	u, conns := serve(t, func(n int32, c *net.TCPConn, r *bufio.Reader) {
		if _, err := readRequest(r); err != nil {
			return
		}
		io.WriteString(c, ok)
		if n > 1 {
			return
		}
		readRequest(r) // read, then dropped without a reply
		c.SetLinger(0) // a reset
	})
	c := newClient(t, wire.Options{})
	body := bytes.Repeat([]byte("x"), 100_000)
	for i := range 2 {
		reply, err := c.Do(t.Context(), &wire.Request{URL: u, Body: body})
		if err != nil || string(reply.Body) != "ok" {
			t.Fatalf("request %d: %v %v", i, reply, err)
		}
	}
	if got := conns.Load(); got != 2 {
		t.Errorf("connections = %d, want 2", got)
	}
}

func TestResendThatDiesIsNotRepeated(t *testing.T) {
	// A bubble, because net/http doesn't reuse a connection whose writer is 50 ms late to say that it is done.
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		dial, _ := piped(t, func(n int32, c net.Conn, r *bufio.Reader) {
			for i := 0; ; i++ {
				if _, err := readRequest(r); err != nil {
					return
				}
				requests.Add(1)
				if n > 1 || i > 0 {
					return
				}
				io.WriteString(c, ok)
			}
		})
		c := newClient(t, wire.Options{Dial: dial})
		if _, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/", Body: []byte("a")}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/", Body: []byte("a")})
		wantCode(t, err, wire.CodeNoReply)
		if got := requests.Load(); got != 3 {
			t.Errorf("requests = %d, want 3: the first, one that died and one resend", got)
		}
	})
}

// On a connection of its own a lost reply is a lost reply: resending could do the work twice.
func TestRequestOnFreshConnectionIsNotResent(t *testing.T) {
	u, conns := serve(t, func(_ int32, _ *net.TCPConn, r *bufio.Reader) { readRequest(r) })
	_, err := newClient(t, wire.Options{}).Do(t.Context(), &wire.Request{URL: u, Body: []byte("a")})
	wantCode(t, err, wire.CodeNoReply)
	if got := conns.Load(); got != 1 {
		t.Errorf("connections = %d, want 1", got)
	}
}

func TestBodyOnSlowLinkIsNoTimeout(t *testing.T) {
	// Real time, because sockets stop a bubble's clock. What is left to do once the last byte has been
	// acknowledged takes a small part of the timeout, however busy the machine is.
	const timeout = 2 * time.Second
	body := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	got := make(chan int, 1)
	u, _ := serve(t, func(_ int32, c *net.TCPConn, r *bufio.Reader) {
		c.SetReadBuffer(16 << 10)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		n, chunk := 0, make([]byte, 64<<10)
		for {
			m, err := io.ReadFull(req.Body, chunk)
			n += m
			if err != nil {
				break
			}
			time.Sleep(250 * time.Millisecond) // four seconds in all: twice the timeout
		}
		got <- n
		io.WriteString(c, ok)
	})
	c := newClient(t, wire.Options{Timeout: timeout})
	reply, err := c.Do(t.Context(), &wire.Request{URL: u, Body: body})
	if err != nil || reply.Status != 200 {
		t.Fatalf("Do = %v, %v", reply, err)
	}
	if n := <-got; n != len(body) {
		t.Errorf("the server got %d bytes, want %d", n, len(body))
	}
}

func TestStalledWriteIsNotSent(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	u, _ := serve(t, func(_ int32, c *net.TCPConn, r *bufio.Reader) { <-release })
	// Real time, as above: what has to come about within it is a loopback connection.
	c := newClient(t, wire.Options{Timeout: 2 * time.Second})
	_, err := c.Do(t.Context(), &wire.Request{URL: u, Body: make([]byte, 32<<20)})
	wantCode(t, err, wire.CodeNotSent)
	if !strings.Contains(err.Error(), "stalled for 2s") {
		t.Errorf("error = %v", err)
	}
}

func TestMuteServerIsNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, conns := piped(t, func(_ int32, c net.Conn, r *bufio.Reader) { readRequest(r); r.ReadByte() })
		c := newClient(t, wire.Options{Dial: dial})
		_, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/", Body: []byte("x")})
		wantCode(t, err, wire.CodeNoReply)
		if got := conns.Load(); got != 1 {
			t.Errorf("connections = %d, want 1: a timeout is no stale connection", got)
		}
	})
}

// A timeout on a reused connection is a timeout, or one slow server would get everything twice.
func TestTimeoutOnReusedConnectionIsNotResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, conns := piped(t, func(_ int32, c net.Conn, r *bufio.Reader) {
			readRequest(r)
			io.WriteString(c, ok)
			readRequest(r)
			r.ReadByte()
		})
		c := newClient(t, wire.Options{Dial: dial})
		if _, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/"}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/", Body: []byte("x")})
		wantCode(t, err, wire.CodeNoReply)
		if got := conns.Load(); got != 1 {
			t.Errorf("connections = %d, want 1", got)
		}
	})
}

func TestRepliesAreCappedInSizeAndTime(t *testing.T) {
	cases := map[string]struct {
		answer  func(c net.Conn)
		status  int
		bytes   int
		trunc   bool
		withErr bool
	}{
		"exactly the cap": {func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", wire.MaxReplyBytes)
			c.Write(make([]byte, wire.MaxReplyBytes))
		}, 200, wire.MaxReplyBytes, false, false},
		"longer than the cap": {func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n", wire.MaxReplyBytes+1)
			c.Write(make([]byte, wire.MaxReplyBytes+1))
		}, 500, wire.MaxReplyBytes, true, false},
		"no length, without end": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 500 X\r\n\r\n")
			for {
				if _, err := c.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, 500, wire.MaxReplyBytes, true, false},
		"dribbling without end": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 500 X\r\n\r\n")
			for {
				if _, err := c.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}, 500, -1, true, true},
		"silent after its header": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 403 X\r\nContent-Length: 10\r\n\r\nabc")
			c.Read(make([]byte, 1)) // to the end of the connection
		}, 403, 3, true, true},
		"cut": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		}, 200, 3, true, true},
		"empty": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
		}, 503, 0, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial, _ := piped(t, func(_ int32, c net.Conn, r *bufio.Reader) { readRequest(r); tc.answer(c) })
				reply, err := newClient(t, wire.Options{Dial: dial}).Do(t.Context(), &wire.Request{URL: "http://sqs.test/"})
				if err != nil {
					t.Fatal(err)
				}
				if reply.Status != tc.status || reply.Truncated != tc.trunc || (reply.Err != nil) != tc.withErr {
					t.Errorf("reply = %d, truncated %v, %v; want %d, %v, error %v", reply.Status, reply.Truncated, reply.Err, tc.status, tc.trunc, tc.withErr)
				}
				if tc.bytes >= 0 && len(reply.Body) != tc.bytes {
					t.Errorf("body = %d bytes, want %d", len(reply.Body), tc.bytes)
				}
			})
		})
	}
}

func TestGarbageIsQuotedShortly(t *testing.T) {
	u, _ := serve(t, func(_ int32, c *net.TCPConn, r *bufio.Reader) {
		readRequest(r)
		io.WriteString(c, strings.Repeat("garbage\x00", 4000)+"\r\n\r\n")
	})
	_, err := newClient(t, wire.Options{}).Do(t.Context(), &wire.Request{URL: u})
	wantCode(t, err, wire.CodeNoReply)
	if len(err.Error()) > 400 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// A pooled body is reused the moment Do returns; the race detector watches.
func TestCancelledRequestLeavesItsBodyAlone(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	started := make(chan struct{}, 1)
	u, _ := serve(t, func(_ int32, c *net.TCPConn, r *bufio.Reader) { started <- struct{}{}; <-release })
	c := newClient(t, wire.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	go func() { <-started; cancel(cause) }()
	body := make([]byte, 32<<20)
	_, err := c.Do(ctx, &wire.Request{URL: u, Body: body})
	clear(body)
	wantCode(t, err, wire.CodeNotSent)
	if !errors.Is(err, cause) {
		t.Errorf("error = %v, want the context's cause", err)
	}
}

func TestCloseEndsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, _ := piped(t, func(_ int32, c net.Conn, r *bufio.Reader) { readRequest(r); r.ReadByte() })
		c := newClient(t, wire.Options{Dial: dial})
		ctx := reluctant{t.Context(), make(chan struct{})}
		result := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, &wire.Request{URL: "http://sqs.test/", Body: []byte("x")})
			result <- err
		}()
		synctest.Wait() // the request has left
		closed := make(chan struct{})
		go func() { c.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while a request was in flight")
		default:
		}
		close(ctx.release)
		<-closed
		wantCode(t, <-result, wire.CodeNoReply)
		_, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/"})
		wantCode(t, err, wire.CodeNotSent)
		c.Close()
	})
}

// reluctant is a context that holds up whoever asks how it is, as Do does of a request that failed.
type reluctant struct {
	context.Context
	release chan struct{}
}

func (c reluctant) Err() error { <-c.release; return c.Context.Err() }

func TestDefaultPortIsNotOnTheWire(t *testing.T) {
	for u, want := range map[string]string{
		"http://sqs.test:80/":   "sqs.test",
		"http://sqs.test:8080/": "sqs.test:8080",
		"http://[::1]:80/":      "[::1]",
		"http://sqs.test/":      "sqs.test",
		"http://sqs.test:443/":  "sqs.test:443",
	} {
		hosts := make(chan string, 1)
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { // ends with the exchange
				defer server.Close()
				r, err := http.ReadRequest(bufio.NewReader(server))
				if err != nil {
					hosts <- err.Error()
					return
				}
				hosts <- r.Host
				io.WriteString(server, ok)
			}()
			return client, nil
		}
		c := newClient(t, wire.Options{Dial: dial})
		if _, err := c.Do(t.Context(), &wire.Request{URL: u}); err != nil {
			t.Fatal(err)
		}
		if got := <-hosts; got != want {
			t.Errorf("%s: host = %q, want %q", u, got, want)
		}
	}
}

func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %d", r.Proto, n)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, wire.Options{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	for range 3 {
		reply, err := c.Do(t.Context(), &wire.Request{URL: s.URL, Body: make([]byte, 300_000)})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(reply.Body); got != "HTTP/2.0 300000" {
			t.Fatalf("reply = %q", got)
		}
		s.CloseClientConnections() // the next one finds a dead connection
	}
}

func TestUnknownAuthorityIsNotSent(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	_, err := newClient(t, wire.Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}).Do(t.Context(), &wire.Request{URL: s.URL})
	wantCode(t, err, wire.CodeNotSent)
}

func TestTimeoutsAreExact(t *testing.T) {
	mute := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go io.Copy(io.Discard, server) // ends with the connection
		return client, nil
	}
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	for name, tc := range map[string]struct {
		dial func(context.Context, string, string) (net.Conn, error)
		code string
	}{"connect": {hang, wire.CodeNotSent}, "reply": {mute, wire.CodeNoReply}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := wire.New(wire.Options{Service: "sqs", Dial: tc.dial})
				start := time.Now()
				_, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/", Body: []byte("x")})
				if got := time.Since(start); got != wire.DefaultTimeout {
					t.Errorf("Do took %v, want %v", got, wire.DefaultTimeout)
				}
				wantCode(t, err, tc.code)
				c.Close()
			})
		})
	}
}

func TestIdleConnectionIsDroppedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closedAt, idleSince time.Time
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { // ends with the connection
				r := bufio.NewReader(server)
				readRequest(r)
				io.WriteString(server, ok)
				idleSince = time.Now()
				r.ReadByte()
				closedAt = time.Now()
				server.Close()
			}()
			return client, nil
		}
		c := wire.New(wire.Options{Service: "sqs", Dial: dial})
		if _, err := c.Do(t.Context(), &wire.Request{URL: "http://sqs.test/"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // when the server would close it
		synctest.Wait()
		if got := closedAt.Sub(idleSince); got != wire.DefaultIdleTimeout {
			t.Errorf("closed after %v, want %v", got, wire.DefaultIdleTimeout)
		}
		c.Close()
	})
}

func TestExcerpt(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", "(empty)"},
		{" \n\t ", "(empty)"},
		{"<html>\r\n  <body>Bad\tgateway", "<html> <body>Bad gateway"},
		{"a\x00b\xffc\x1b[31m", "a.b.c.[31m"},
		{strings.Repeat("é", 100), strings.Repeat("é", 59) + "…"},
	} {
		if got := wire.Excerpt([]byte(tc.in)); got != tc.want {
			t.Errorf("Excerpt(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}
