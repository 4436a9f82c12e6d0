package wire_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/wire"
	"golang.org/x/net/http2"
)

// A server that is about to go tells with GOAWAY which requests it has not looked at. Those, and those
// that die with the connection, are sent again without anybody noticing.
func TestGoawayIsResentOnFreshConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		answerFirst bool   // so that the connection is a reused one
		last        uint32 // the last stream that the server says it has looked at
	}{
		"request not looked at":                    {false, 0},
		"request not looked at, reused connection": {true, 1},
		"request died, reused connection":          {true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			good := httptest.NewUnstartedServer(nil) // for its certificate
			good.EnableHTTP2 = true
			good.StartTLS()
			t.Cleanup(good.Close)
			clientTLS := good.Client().Transport.(*http.Transport).TLSClientConfig
			l, err := tls.Listen("tcp", "127.0.0.1:0", good.TLS)
			if err != nil {
				t.Fatal(err)
			}
			first := &firstConn{Listener: l, handle: func(c net.Conn) { goaway(t, c, tc.answerFirst, tc.last) }}
			var resent atomic.Int32
			second := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				resent.Add(1)
				n, _ := io.Copy(io.Discard, r.Body)
				fmt.Fprintf(w, "%s %d", r.Proto, n)
			})}
			done := make(chan struct{})
			go func() { second.Serve(first); close(done) }() // ends at Close
			t.Cleanup(func() { second.Close(); <-done })
			c := newClient(t, wire.Options{TLS: clientTLS})
			u := "https://" + l.Addr().String() + "/"
			if tc.answerFirst {
				if reply, err := c.Do(t.Context(), &wire.Request{URL: u, Body: make([]byte, 10)}); err != nil || reply.Status != 204 {
					t.Fatalf("first request: %+v, %v", reply, err)
				}
			}
			reply, err := c.Do(t.Context(), &wire.Request{URL: u, Body: make([]byte, 20)})
			if err != nil || string(reply.Body) != "HTTP/2.0 20" {
				t.Fatalf("Do = %+v, %v", reply, err)
			}
			// Not connections: net/http may make one more than it uses.
			if n := resent.Load(); n != 1 {
				t.Errorf("the request was sent again %d times, want once", n)
			}
		})
	}
}

// firstConn takes a listener's first connection for itself.
type firstConn struct {
	net.Listener
	handle func(net.Conn)
	conns  atomic.Int32
}

func (l *firstConn) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.conns.Add(1) == 1 {
		l.handle(c)
		return l.Accept()
	}
	return c, err
}

// goaway speaks just enough HTTP/2 to answer one request if it must, and to leave at the next.
func goaway(t *testing.T, c net.Conn, answerFirst bool, last uint32) {
	defer c.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		t.Errorf("preface: %v", err)
		return
	}
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Errorf("frame: %v", err)
			return
		}
		data, ok := frame.(*http2.DataFrame)
		if !ok || !data.StreamEnded() {
			continue
		}
		if answerFirst {
			answerFirst = false
			// 0x89 is ":status 204" of HPACK's static table.
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: data.StreamID, BlockFragment: []byte{0x89}, EndHeaders: true, EndStream: true})
			continue
		}
		f.WriteGoAway(last, http2.ErrCodeNo, nil)
		return
	}
}

// On HTTP/2 all requests share a connection, and the others' traffic is no sign of life of a mute one.
func TestMuteStreamTimesOutBesideBusyOnes(t *testing.T) {
	good := httptest.NewUnstartedServer(nil) // for its certificate
	good.EnableHTTP2 = true
	good.StartTLS()
	t.Cleanup(good.Close)
	synctest.Test(t, func(t *testing.T) {
		l := localcloud.NewPipeListener()
		s := &http.Server{TLSConfig: good.TLS.Clone(), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if r.URL.Path == "/mute" {
				<-r.Context().Done()
			}
		})}
		done := make(chan struct{})
		go func() { s.ServeTLS(l, "", ""); close(done) }() // ends at Close
		t.Cleanup(func() { s.Close(); <-done })
		c := newClient(t, wire.Options{Dial: l.DialContext, TLS: good.Client().Transport.(*http.Transport).TLSClientConfig})
		const u = "https://example.com"                                     // one of the certificate's names
		if _, err := c.Do(t.Context(), &wire.Request{URL: u}); err != nil { // makes the connection
			t.Fatal(err)
		}
		start := time.Now()
		mute := make(chan error, 1)
		go func() {
			_, err := c.Do(t.Context(), &wire.Request{URL: u + "/mute", Body: make([]byte, 100)})
			mute <- err
		}()
		body := make([]byte, 50_000)
		for time.Since(start) < 2*wire.DefaultTimeout {
			select {
			case err := <-mute:
				wantCode(t, err, wire.CodeNoReply)
				if took := time.Since(start); took > wire.DefaultTimeout+time.Second {
					t.Errorf("the mute request timed out after %v, want soon after %v", took, wire.DefaultTimeout)
				}
				return
			default:
			}
			if _, err := c.Do(t.Context(), &wire.Request{URL: u, Body: body}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error("the mute request never timed out")
	})
}
