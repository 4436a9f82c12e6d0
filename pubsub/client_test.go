package pubsub

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// tokens is a TokenSource that counts.
type tokens struct {
	mu          sync.Mutex
	next        []string // handed out in turn when there is none; the last for ever
	current     string
	asked       int
	invalidated []string
	err         error
}

func (s *tokens) Token(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return "", s.err
	}
	if s.current == "" {
		s.current = s.next[0]
		if len(s.next) > 1 {
			s.next = s.next[1:]
		}
	}
	return s.current, nil
}

func (s *tokens) Invalidate(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invalidated = append(s.invalidated, token)
	if s.current == token {
		s.current = ""
	}
}

// serve starts a TLS service and returns a Client of it.
func serve(t *testing.T, h http.HandlerFunc, opts Options) *Client {
	t.Helper()
	s := httptest.NewTLSServer(h)
	w := wire.New(wire.Options{Service: "pubsub", TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	t.Cleanup(func() { w.Close(); s.Close() })
	if opts.Project == "" && opts.Projects == nil {
		opts.Project = "acme"
	}
	opts.Endpoint, opts.Wire = s.URL, w
	c, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The bytes that reach a server, head and body.
func TestRequestOnTheWireIsGolden(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // for its certificate
	defer s.Close()
	got := make(chan []byte, 1)
	go func() { // ends with the one connection that it takes
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn = tls.Server(conn, &tls.Config{Certificates: s.TLS.Certificates}) // no ALPN: HTTP/1.1
		var raw bytes.Buffer
		r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &raw)))
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		got <- raw.Bytes()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\n{\"messageIds\":[\"1\"]}")
	}()
	w := wire.New(wire.Options{Service: "pubsub", TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	defer w.Close()
	c, err := New(Options{Project: "example.com:acme", Endpoint: "https://" + l.Addr().String() + "/base/", Tokens: &tokens{next: []string{"ya29.t0ken"}}, Wire: w})
	if err != nil {
		t.Fatal(err)
	}
	errs := c.Publish(t.Context(), "a+b%2Fc", []Message{{Data: []byte("hello"), Attributes: []Attribute{{"ankusa_id", "01a0"}}, OrderingKey: "k"}})
	if errs[0] != nil {
		t.Errorf("Publish: %v", errs[0])
	}
	text := strings.ReplaceAll(string(<-got), l.Addr().String(), "HOST")
	text = strings.ReplaceAll(text, "\r\n", "\n") + "\n"
	if want := string(golden(t, "request.golden")); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func ok(w http.ResponseWriter, n int) {
	fmt.Fprintf(w, `{"messageIds":[%s]}`, strings.TrimSuffix(strings.Repeat(`"1",`, n), ","))
}

func unauthenticated(w http.ResponseWriter) {
	w.WriteHeader(401)
	_, _ = io.WriteString(w, `{"error":{"code":401,"status":"UNAUTHENTICATED","message":"Request had invalid authentication credentials."}}`)
}

// One 401 is a token gone stale: a new one, once more, and nobody hears of it.
func TestOne401IsMetWithANewToken(t *testing.T) {
	var seen []Observation
	source := &tokens{next: []string{"old", "new"}}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			unauthenticated(w)
			return
		}
		ok(w, 2)
	}, Options{Tokens: source, Observe: func(o Observation) { seen = append(seen, o) }})
	errs := c.Publish(t.Context(), "hooks", named(2, ""))
	if len(failures(errs)) != 0 {
		t.Errorf("failures: %v", failures(errs))
	}
	if !slices.Equal(source.invalidated, []string{"old"}) {
		t.Errorf("dropped %v, want [old]", source.invalidated)
	}
	if len(seen) != 2 || !seen[0].Resent || seen[1].Resent || seen[1].Outcome() != "ok" || seen[1].Entries != 2 || seen[1].Bytes == 0 {
		t.Errorf("observed %+v", seen)
	}
}

func TestLasting401IsAConfigError(t *testing.T) {
	requests := 0
	source := &tokens{next: []string{"a", "b", "c"}}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { requests++; unauthenticated(w) }, Options{Tokens: source})
	errs := c.Publish(t.Context(), "hooks", named(3, ""))
	for i, err := range errs {
		if e := classify.Of(err); e == nil || e.Class != classify.Config || e.Code != "UNAUTHENTICATED" {
			t.Errorf("message %d: %v, want config UNAUTHENTICATED", i, err)
		}
	}
	if requests != 2 || !slices.Equal(source.invalidated, []string{"a", "b"}) {
		t.Errorf("%d requests, dropped %v, want 2 and [a b]", requests, source.invalidated)
	}
}

// Without a token nothing is sent, not even the second of several requests.
func TestNoCredentialsSendNothing(t *testing.T) {
	requests := 0
	source := &tokens{err: classify.Transientf("pubsub", "no_credentials", "none found")}
	c := serve(t, func(http.ResponseWriter, *http.Request) { requests++ }, Options{Tokens: source, MaxEntries: 1})
	errs := c.Publish(t.Context(), "hooks", named(5, ""))
	for i, err := range errs {
		if err == nil || err.Error() != "transient: pubsub no_credentials: none found" {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if requests != 0 || source.asked != 1 {
		t.Errorf("%d requests, asked %d times for a token, want 0 and 1", requests, source.asked)
	}
}

// Over plain http there is no Authorization header, and the source isn't even asked.
func TestNoTokenOverPlainHTTP(t *testing.T) {
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		unauthenticated(w)
	}))
	defer s.Close()
	w := wire.New(wire.Options{Service: "pubsub"})
	defer w.Close()
	source := &tokens{next: []string{"secret"}}
	c, err := New(Options{Project: "acme", Endpoint: s.URL, Tokens: source, Wire: w})
	if err != nil {
		t.Fatal(err)
	}
	errs := c.Publish(t.Context(), "hooks", named(1, ""))
	if _, sent := header["Authorization"]; sent || source.asked != 0 {
		t.Errorf("Authorization header: %v, asked %d times for a token", sent, source.asked)
	}
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "no token is sent to an emulator or over plain http") {
		t.Errorf("got %v, want advice", errs[0])
	}
}

// The pause of an outage is not remembered: what failed is published once the service is back, in order.
func TestOrderingKeyResumesAfterAnOutage(t *testing.T) {
	addr := "127.0.0.1:" + peers.FreePort(t) // refuses connections
	w := wire.New(wire.Options{Service: "pubsub"})
	defer w.Close()
	c, err := New(Options{Project: "acme", Endpoint: "http://" + addr, Wire: w})
	if err != nil {
		t.Fatal(err)
	}
	errs := c.Publish(t.Context(), "hooks", named(3, "k"))
	for i, err := range errs {
		if e := classify.Of(err); e == nil || e.Class != classify.Transient {
			t.Fatalf("message %d during the outage: %v, want transient", i, err)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ok(w, 3) })}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	if errs := c.Publish(t.Context(), "hooks", named(3, "k")); len(failures(errs)) != 0 {
		t.Errorf("after the outage: %v", failures(errs))
	}
}

func TestProjectIsAskedOfTheCredential(t *testing.T) {
	var path string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; ok(w, 1) },
		Options{Projects: project{"from-key", nil}, Tokens: &tokens{next: []string{"t"}}})
	if errs := c.Publish(t.Context(), "hooks", named(1, "")); errs[0] != nil || path != "/v1/projects/from-key/topics/hooks:publish" {
		t.Errorf("%v, path %s", errs[0], path)
	}
	c.opts.Projects = project{"", classify.Configf("pubsub", "invalid_project", "set project")}
	for i, err := range c.Publish(t.Context(), "hooks", named(2, "")) {
		if err == nil || classify.Of(err).Class != classify.Config {
			t.Errorf("message %d: %v, want a config error", i, err)
		}
	}
}

type project struct {
	id  string
	err error
}

func (p project) Project(context.Context) (string, error) { return p.id, p.err }

func TestConcurrentPublishesShareNothing(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		ok(w, bytes.Count(body, []byte(`"data"`)))
	}, Options{Tokens: &tokens{next: []string{"t"}}})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 20 {
				if errs := c.Publish(t.Context(), "hooks", hooks(1+n*10, 100)); len(failures(errs)) != 0 {
					t.Errorf("failures: %v", failures(errs))
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkPublish(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		ok(w, 1000)
	}))
	defer s.Close()
	w := wire.New(wire.Options{Service: "pubsub"})
	defer w.Close()
	c, err := New(Options{Project: "acme", Endpoint: s.URL, Wire: w})
	if err != nil {
		b.Fatal(err)
	}
	msgs := hooks(1000, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		if errs := c.Publish(b.Context(), "hooks", msgs); errs[0] != nil {
			b.Fatal(errs[0])
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "messages/s")
}
