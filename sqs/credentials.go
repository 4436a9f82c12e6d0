package sqs

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/aws/aws-sdk-go-v2/aws"
)

const (
	// refreshAhead is how long before their end credentials are looked up again, if they live long
	// enough. The metadata service offers new ones at least five minutes before the old ones end.
	refreshAhead = 5 * time.Minute
	// refreshRetry is the pause after a refresh that failed while the old credentials were still good.
	refreshRetry = 10 * time.Second
	// pastExpiryUse is how long credentials are used whose end had passed when they were handed out.
	// The metadata service does that when it is in trouble itself, and SQS may well accept them.
	pastExpiryUse = time.Minute
	// filesCheck is how often credentials without an end are compared with the files they came from.
	filesCheck = 5 * time.Second
)

// CachedCredentials are looked up when they are first needed, shared by all who need them and looked up
// again before they end. Use [LoadCredentials].
//
// A failed look-up is not remembered: the next Retrieve tries again. One look-up runs at a time and
// serves all who wait; it goes on when one of them gives up. Credentials that are still good are used
// while a look-up runs and after it failed.
type CachedCredentials struct {
	lookup  func(context.Context) (aws.Credentials, error)
	stamp   func() string // changes when the files that lookup reads do; nil when there are none
	timeout time.Duration
	now     func() time.Time

	ctx    context.Context // ends at Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex // guards the fields below; never held across a look-up
	current   aws.Credentials
	have      bool
	until     time.Time // current is used no longer; zero means no end
	refreshAt time.Time // current is looked up again; zero means never
	stamped   string    // the files when current was looked up
	checkAt   time.Time // the files are compared again
	running   *lookup
	closed    bool
}

// lookup is one look-up and all who wait for it.
type lookup struct {
	done  chan struct{}
	creds aws.Credentials // set before done is closed
	err   error
}

func newCached(look func(context.Context) (aws.Credentials, error), stamp func() string, timeout time.Duration, now func() time.Time) *CachedCredentials {
	c := &CachedCredentials{lookup: look, stamp: stamp, timeout: timeout, now: now}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Retrieve returns credentials that were good when last heard of. It waits for a look-up only when there
// are none; when ctx ends first it returns ctx's cause, and the look-up goes on for the others.
//
// The error is a [*classify.Error]: transient no_credentials when no source had any or none could be
// reached, throttled when their issuer was too busy, config when it refused.
func (c *CachedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c.mu.Lock()
	now := c.now()
	if c.have && !c.until.IsZero() && !now.Before(c.until) {
		c.have = false
	}
	if c.have {
		if c.filesChangedLocked(now) {
			c.refreshAt = now
		}
		if !c.refreshAt.IsZero() && !now.Before(c.refreshAt) {
			c.startLocked() // in the background; the current ones will do meanwhile
		}
		creds := c.current
		c.mu.Unlock()
		return creds, nil
	}
	l := c.startLocked()
	c.mu.Unlock()
	if l == nil {
		return aws.Credentials{}, classify.Transientf(service, CodeNoCredentials, "the credentials are closed")
	}
	select {
	case <-l.done:
		return l.creds, l.err
	case <-ctx.Done():
		cause := context.Cause(ctx)
		return aws.Credentials{}, &classify.Error{Service: service, Code: CodeNoCredentials, Message: "given up while credentials were looked up: " + cause.Error(), Err: cause}
	}
}

// Invalidate drops the credentials if they are still the ones the service refused.
func (c *CachedCredentials) Invalidate(refused aws.Credentials) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have && sameKeys(c.current, refused) {
		c.have = false
	}
}

// Close ends a look-up that runs, and waits for it. Retrieve returns an error afterwards unless the
// credentials are still good.
func (c *CachedCredentials) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

func sameKeys(a, b aws.Credentials) bool {
	return a.AccessKeyID == b.AccessKeyID && a.SecretAccessKey == b.SecretAccessKey && a.SessionToken == b.SessionToken
}

func (c *CachedCredentials) filesChangedLocked(now time.Time) bool {
	if c.stamp == nil || now.Before(c.checkAt) {
		return false
	}
	c.checkAt = now.Add(filesCheck)
	return c.stamp() != c.stamped
}

// startLocked returns the look-up that runs, and starts one if none does; nil after Close.
func (c *CachedCredentials) startLocked() *lookup {
	if c.running != nil || c.closed {
		return c.running
	}
	l := &lookup{done: make(chan struct{})}
	c.running = l
	c.wg.Go(func() { c.run(l) }) // ends with the look-up, which ctx and timeout bound
	return l
}

func (c *CachedCredentials) run(l *lookup) {
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	stamp := ""
	if c.stamp != nil {
		stamp = c.stamp() // before the files are read, or a change in between would go unnoticed
	}
	creds, err := c.lookup(ctx)
	if err == nil {
		creds, err = trimKeys(creds)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(l.done)
	c.running = nil
	now := c.now()
	if err != nil {
		l.err = err
		// Without credentials every Retrieve tries again; its callers back off. With good ones there
		// is no hurry.
		c.refreshAt = now.Add(refreshRetry)
		c.stamped = stamp
		return
	}
	l.creds = creds
	c.current, c.have, c.stamped, c.checkAt = creds, true, stamp, now.Add(filesCheck)
	c.until, c.refreshAt = time.Time{}, time.Time{}
	if !creds.CanExpire {
		return
	}
	left := creds.Expires.Sub(now)
	if left <= 0 {
		c.until = now.Add(pastExpiryUse)
		c.refreshAt = c.until
		return
	}
	c.until = creds.Expires
	c.refreshAt = creds.Expires.Add(-min(refreshAhead, left/3))
}

// trimKeys drops white space around a key, as a file with a trailing newline leaves it, and refuses by
// name what can't be one.
func trimKeys(c aws.Credentials) (aws.Credentials, error) {
	for _, f := range [...]struct {
		name  string
		value *string
		must  bool
	}{{"access key id", &c.AccessKeyID, true}, {"secret access key", &c.SecretAccessKey, true}, {"session token", &c.SessionToken, false}} {
		v, err := trimKey(f.name, *f.value)
		if err != nil {
			return aws.Credentials{}, err
		}
		if v == "" && f.must {
			return aws.Credentials{}, classify.Transientf(service, CodeNoCredentials, "the %s from %s is empty", f.name, cmp.Or(c.Source, "its source"))
		}
		*f.value = v
	}
	return c, nil
}

// trimKey returns value without white space around it. Inside, only visible ASCII makes a key; the
// error names the field and never the value.
func trimKey(name, value string) (string, error) {
	value = strings.TrimSpace(value)
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return "", classify.Configf(service, "invalid_credentials", "the %s holds a space, a line break or another character that no key has, at byte %d", name, i)
		}
	}
	return value, nil
}
