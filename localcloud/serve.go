package localcloud

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Server is an http.Server that runs on one listener until Close.
type Server struct {
	http     *http.Server
	ln       net.Listener
	end      context.CancelFunc
	wg       sync.WaitGroup // the accept loop
	mu       sync.Mutex     // guards the fields below
	closing  bool
	handlers sync.WaitGroup // requests being handled; Add only under mu and before closing
}

// Serve starts serving h on ln and returns at once. Each of options may change the http.Server
// before it starts, for example to give it an IdleTimeout or protocols; BaseContext and Handler are
// Serve's own.
//
// A handler's request context ends when the client goes or when the server is closed, so a handler
// that stalls on purpose waits for nothing but that.
func Serve(ln net.Listener, h http.Handler, options ...func(*http.Server)) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{http: &http.Server{}, ln: ln, end: cancel}
	for _, o := range options {
		o(s.http)
	}
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if s.closing {
			s.mu.Unlock()
			panic(http.ErrAbortHandler) // a request that slipped in while closing
		}
		s.handlers.Add(1)
		s.mu.Unlock()
		defer s.handlers.Done()
		h.ServeHTTP(w, r)
	})
	s.wg.Go(func() { _ = s.http.Serve(ln) }) // ends when Close or Shutdown closes the listener
	return s
}

// URL is the server's base address, without a trailing slash. Over a PipeListener it is
// "http://localcloud.test", for a client whose transport dials that listener.
func (s *Server) URL() string {
	if _, ok := s.ln.(*PipeListener); ok {
		return "http://localcloud.test"
	}
	return "http://" + s.ln.Addr().String()
}

// Close cuts every connection, ends every request's context, and returns when the accept loop and
// all handlers have returned. Twice is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	// Connections first: a handler that a cancelled context wakes must not answer as if nothing were.
	err := s.http.Close()
	s.end()
	s.wg.Wait()
	s.handlers.Wait()
	return err
}

// Shutdown lets requests in flight finish, then closes. When ctx ends first the rest is cut, as by
// Close, and ctx's error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}
