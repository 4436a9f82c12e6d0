package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/aws/aws-sdk-go-v2/aws"
)

// source hands out numbered keys that live for life, after thinking for a while.
type source struct {
	calls atomic.Int32
	takes time.Duration
	life  time.Duration // 0: no end
	fail  error
}

func (s *source) look(ctx context.Context) (aws.Credentials, error) {
	n := s.calls.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return aws.Credentials{}, context.Cause(ctx)
	}
	if s.fail != nil {
		return aws.Credentials{}, s.fail
	}
	c := aws.Credentials{AccessKeyID: fmt.Sprint("K", n), SecretAccessKey: "s"}
	if s.life != 0 {
		c.CanExpire, c.Expires = true, time.Now().Add(s.life)
	}
	return c, nil
}

func wantKey(t *testing.T, c *CachedCredentials, want string) {
	t.Helper()
	got, err := c.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != want {
		t.Errorf("Retrieve = %q, %v; want %q", got.AccessKeyID, err, want)
	}
}

func inBubble(t *testing.T, s *source, test func(t *testing.T, c *CachedCredentials)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCached(s.look, nil, lookupTimeout, time.Now)
		test(t, c)
		c.Close()
	})
}

func TestOneLookupServesAll(t *testing.T) {
	s := &source{takes: time.Second, life: time.Hour}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { _, err := c.Retrieve(ctx); gaveUp <- err }() // it begins the look-up
		synctest.Wait()
		done := make(chan struct{})
		for range 32 {
			go func() { wantKey(t, c, "K1"); done <- struct{}{} }()
		}
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who gave up got %v", err)
		}
		for range 32 {
			<-done
		}
		if n := s.calls.Load(); n != 1 {
			t.Errorf("look-ups = %d, want 1", n)
		}
	})
}

func TestRefreshRunsAheadAndInTheBackground(t *testing.T) {
	s := &source{takes: time.Second, life: 20 * time.Second}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		wantKey(t, c, "K1")
		time.Sleep(13 * time.Second)
		wantKey(t, c, "K1")
		synctest.Wait()
		if n := s.calls.Load(); n != 1 {
			t.Fatalf("look-ups = %d after 13s of 20s, want 1", n)
		}
		time.Sleep(time.Second)
		start := time.Now()
		for range 32 {
			wantKey(t, c, "K1") // still good, and nobody waits
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the refresh was waited for: %v", d)
		}
		time.Sleep(time.Second + 1)
		wantKey(t, c, "K2")
		if n := s.calls.Load(); n != 2 {
			t.Errorf("look-ups = %d, want 2", n)
		}
	})
}

func TestGoodCredentialsOutliveFailedRefresh(t *testing.T) {
	s := &source{life: time.Hour}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		wantKey(t, c, "K1")
		s.fail = classify.Throttledf("sts", "Throttling", "slow down")
		time.Sleep(56 * time.Minute)
		for range 100 {
			wantKey(t, c, "K1")
			synctest.Wait()
		}
		if n := s.calls.Load(); n != 2 {
			t.Errorf("look-ups = %d, want 2: one failed, the next is not due", n)
		}
		time.Sleep(refreshRetry)
		wantKey(t, c, "K1")
		synctest.Wait()
		if n := s.calls.Load(); n != 3 {
			t.Errorf("look-ups = %d, want 3", n)
		}
		time.Sleep(4 * time.Minute) // past their end
		_, err := c.Retrieve(t.Context())
		if e := classify.Of(err); e == nil || e.Class != classify.Throttled {
			t.Errorf("Retrieve past the end = %v, want the refresh's failure", err)
		}
		s.fail = nil
		if got, err := c.Retrieve(t.Context()); err != nil || got.AccessKeyID == "K1" {
			t.Errorf("Retrieve = %v, %v: a failure was remembered", got.AccessKeyID, err)
		}
	})
}

func TestFailedLookupIsNotRemembered(t *testing.T) {
	s := &source{fail: errors.New("no")}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		if _, err := c.Retrieve(t.Context()); err == nil {
			t.Fatal("no error")
		}
		s.fail = nil
		wantKey(t, c, "K2")
	})
}

func TestPastExpiryIsTriedAndNotLoopedOn(t *testing.T) {
	s := &source{life: -time.Hour}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		for range 100 {
			wantKey(t, c, "K1")
		}
		time.Sleep(pastExpiryUse)
		wantKey(t, c, "K2")
		if n := s.calls.Load(); n != 2 {
			t.Errorf("look-ups = %d, want 2", n)
		}
	})
}

func TestInvalidateDropsOnlyWhatWasRefused(t *testing.T) {
	s := &source{takes: time.Second, life: time.Hour}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		first, _ := c.Retrieve(t.Context())
		c.Invalidate(first)
		wantKey(t, c, "K2")
		c.Invalidate(first) // the answer to a request signed before
		wantKey(t, c, "K2")
		if n := s.calls.Load(); n != 2 {
			t.Errorf("look-ups = %d, want 2", n)
		}
	})
}

func TestLookupIsBounded(t *testing.T) {
	s := &source{takes: time.Hour}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		start := time.Now()
		_, err := c.Retrieve(t.Context())
		if d := time.Since(start); d != lookupTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Retrieve = %v after %v, want the timeout after %v", err, d, lookupTimeout)
		}
	})
}

func TestCloseEndsTheLookup(t *testing.T) {
	s := &source{takes: time.Hour}
	inBubble(t, s, func(t *testing.T, c *CachedCredentials) {
		failed := make(chan error)
		go func() { _, err := c.Retrieve(t.Context()); failed <- err }()
		synctest.Wait()
		go c.Close()
		if err := <-failed; err == nil {
			t.Error("no error")
		}
		if _, err := c.Retrieve(t.Context()); err == nil {
			t.Error("a look-up after Close")
		}
		if n := s.calls.Load(); n != 1 {
			t.Errorf("look-ups = %d, want 1", n)
		}
	})
}

func TestChangedFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		var files atomic.Value
		files.Store("one")
		c := newCached(s.look, func() string { return files.Load().(string) }, lookupTimeout, time.Now)
		wantKey(t, c, "K1")
		time.Sleep(time.Hour)
		wantKey(t, c, "K1")
		files.Store("two")
		time.Sleep(filesCheck)
		wantKey(t, c, "K1")
		synctest.Wait() // the refresh in the background
		wantKey(t, c, "K2")
		time.Sleep(time.Hour)
		wantKey(t, c, "K2")
		if n := s.calls.Load(); n != 2 {
			t.Errorf("look-ups = %d, want 2", n)
		}
		c.Close()
	})
}

func TestKeysAreTrimmedOrRefusedByName(t *testing.T) {
	look := func(id, secret, token string) func(context.Context) (aws.Credentials, error) {
		return func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}, nil
		}
	}
	c := newCached(look("\tAKID\n", "a/b+c=\r\n", " tok "), nil, lookupTimeout, time.Now)
	got, err := c.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "AKID" || got.SecretAccessKey != "a/b+c=" || got.SessionToken != "tok" {
		t.Errorf("Retrieve = %+v, %v", got, err)
	}
	c.Close()
	for name, l := range map[string]func(context.Context) (aws.Credentials, error){
		"access key id": look("AK\nID", "s", ""), "secret access key": look("A", "hush hush", ""), "session token": look("A", "s", "é"),
	} {
		c := newCached(l, nil, lookupTimeout, time.Now)
		_, err := c.Retrieve(t.Context())
		if e := classify.Of(err); e == nil || e.Class != classify.Config || !strings.Contains(e.Error(), name) || strings.Contains(e.Error(), "hush") {
			t.Errorf("%s: error = %v", name, err)
		}
		c.Close()
	}
	c = newCached(look("A", " ", ""), nil, lookupTimeout, time.Now)
	if _, err := c.Retrieve(t.Context()); classify.Of(err) == nil || classify.Of(err).Code != CodeNoCredentials {
		t.Errorf("an empty secret: %v", err)
	}
	c.Close()
}
