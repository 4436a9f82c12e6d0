package localcloud

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func pipeClient(ln *PipeListener) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: ln.DialContext}}
}

// The point of PipeListener: an hour on the server costs no time in a bubble, and is exact.
func TestPipeKeepsTheBubblesClockRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		s := Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = Sleep(r.Context(), time.Hour)
			_, _ = io.WriteString(w, "done")
		}))
		defer s.Close()
		client := pipeClient(ln)
		defer client.CloseIdleConnections()
		start := time.Now()
		resp, err := client.Get(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if took := time.Since(start); took != time.Hour || string(body) != "done" {
			t.Errorf("got %q after %v, want done after exactly 1h", body, took)
		}
	})
}

func TestCloseEndsStalledHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		returned := false
		s := Serve(ln, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			returned = true
		}))
		client := pipeClient(ln)
		failed := make(chan error)
		go func() {
			_, err := client.Get(s.URL()) //nolint:bodyclose // it fails
			failed <- err
		}()
		synctest.Wait()
		done := make(chan struct{})
		go func() { _ = s.Close(); close(done) }()
		if err := <-failed; err == nil {
			t.Error("the request succeeded, want an error")
		}
		<-done
		if !returned {
			t.Error("Close returned before the handler did")
		}
		if err := s.Close(); err != nil {
			t.Errorf("second Close = %v, want nil", err)
		}
	})
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := NewPipeListener()
		s := Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := Sleep(r.Context(), 3*time.Second); err != nil {
				t.Errorf("the request was cut: %v", err)
			}
		}))
		client := pipeClient(ln)
		status := make(chan int)
		go func() {
			resp, err := client.Get(s.URL())
			if err != nil {
				t.Error(err)
				status <- 0
				return
			}
			resp.Body.Close()
			status <- resp.StatusCode
		}()
		synctest.Wait()
		down := make(chan error)
		go func() { down <- s.Shutdown(context.Background()) }()
		if got := <-status; got != 200 {
			t.Errorf("status %d, want 200", got)
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown = %v, want nil", err)
		}
	})
}

func TestPipeListenerRefusesAfterClose(t *testing.T) {
	ln := NewPipeListener()
	_ = ln.Close()
	_ = ln.Close()
	if _, err := ln.DialContext(t.Context(), "tcp", "x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("DialContext = %v, want net.ErrClosed", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept = %v, want net.ErrClosed", err)
	}
	open := NewPipeListener()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open.DialContext(ctx, "tcp", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("DialContext with nobody accepting = %v, want context.Canceled", err)
	}
}
