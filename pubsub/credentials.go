package pubsub

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

const (
	// Scope is the OAuth scope that Credentials ask for unless told otherwise.
	Scope = "https://www.googleapis.com/auth/pubsub"
	// StorageScope is what writing to Cloud Storage takes: a token for Pub/Sub alone is refused there.
	StorageScope = "https://www.googleapis.com/auth/devstorage.read_write"
	// DefaultLookupTimeout bounds one look-up of a credential with all its steps.
	DefaultLookupTimeout = 10 * time.Second

	// renewAhead is how long before its end a token is renewed. The metadata server hands out the same
	// token until four minutes before, so asking earlier than this is in vain.
	renewAhead = 225 * time.Second
	// renewPause is the time between two attempts at renewing a token that still serves.
	renewPause = 10 * time.Second
	// leastService is how long a token serves even if its issuer says that it is over at once, so that
	// a wrong clock or expires_in does not turn into one look-up per request. A token that really is
	// over is found out by a 401, which drops it.
	leastService = time.Second
)

// CredentialOptions configure [NewCredentials].
type CredentialOptions struct {
	// JSON is the content of a credential file. Empty means the application default credentials:
	// GOOGLE_APPLICATION_CREDENTIALS, gcloud's file in the home directory, the metadata server.
	JSON string
	// Scopes to ask for. Empty means Scope.
	Scopes []string
	// Service names the asking service in errors. Empty means "pubsub".
	Service string
	// LookupTimeout bounds one look-up with all its steps. Zero means DefaultLookupTimeout.
	LookupTimeout time.Duration
	// TLS is used towards the issuer of tokens. Nil means Go's defaults.
	TLS *tls.Config
	// Getenv reads the environment. Nil means os.Getenv.
	Getenv func(string) string
	// Warn is told of a renewal that failed while the old token still serves, which nobody else would
	// hear of. Nil for nobody.
	Warn func(error)
}

// Credentials is a [TokenSource] and a [ProjectSource] over Google's credentials. Use [NewCredentials].
type Credentials struct {
	service string
	json    []byte // nil: look for one
	scopes  []string
	timeout time.Duration
	getenv  func(string) string
	warn    func(error)
	issuer  http.RoundTripper // to token issuers
	local   http.RoundTripper // to the metadata server

	ctx    context.Context // ends at Close, and with it every look-up
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below; never held across a look-up
	closed  bool
	wg      sync.WaitGroup // look-ups
	token   string         // empty: none
	renewAt time.Time      // when to look for a new one; the old one serves until overAt
	overAt  time.Time      // zero: never
	source  string         // where the last token came from
	project string         // once known
	tokens  *flight        // the look-up that is under way
	asked   *flight        // the same for the project
}

// flight is a look-up that several may wait for. Its result may be read once done is closed.
type flight struct {
	done  chan struct{}
	value string
	err   error
}

// NewCredentials returns Credentials. It checks opts.JSON and does nothing else: no file is read and
// nobody is dialled before the first Token or Project. The error is a config error.
func NewCredentials(opts CredentialOptions) (*Credentials, error) {
	c := &Credentials{
		service: cmp.Or(opts.Service, service),
		scopes:  opts.Scopes,
		timeout: cmp.Or(opts.LookupTimeout, DefaultLookupTimeout),
		getenv:  opts.Getenv,
		warn:    opts.Warn,
	}
	if len(c.scopes) == 0 {
		c.scopes = []string{Scope}
	}
	if c.getenv == nil {
		c.getenv = os.Getenv
	}
	if text := strings.TrimSpace(opts.JSON); text != "" {
		c.json = []byte(text)
		if _, err := parseCredential(c.json); err != nil {
			return nil, classify.Configf(c.service, "invalid_credentials", "credentials_json: %v", err)
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	// Look-ups are rare, so no connection is worth keeping, and none is left to close.
	c.issuer = &http.Transport{
		Proxy:                  proxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig:        opts.TLS.Clone(),
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	// The metadata server is one hop away and no proxy's business. A machine without one may have a
	// network that swallows the packets, hence the short patience.
	c.local = &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		ResponseHeaderTimeout:  5 * time.Second,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return c, nil
}

// proxyFromEnvironment is http.ProxyFromEnvironment with an error that does not quote the variable,
// which may hold a password.
func proxyFromEnvironment(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errors.New("the proxy named by the environment (HTTPS_PROXY or HTTP_PROXY) is no valid proxy URL")
	}
	return u, nil
}

// Token returns an access token: the one in memory while it serves, else the result of a look-up that
// all who wait share. When ctx ends, only this wait does.
func (c *Credentials) Token(ctx context.Context) (string, error) {
	c.mu.Lock()
	now := time.Now()
	if c.token != "" && (c.overAt.IsZero() || now.Before(c.overAt)) {
		token := c.token
		if !c.renewAt.IsZero() && !now.Before(c.renewAt) && c.tokens == nil && !c.closed {
			c.renewAt = now.Add(renewPause)
			c.lookUpTokenLocked()
		}
		c.mu.Unlock()
		return token, nil
	}
	if c.closed {
		c.mu.Unlock()
		return "", c.errClosed()
	}
	if c.tokens == nil {
		c.lookUpTokenLocked()
	}
	f := c.tokens
	c.mu.Unlock()
	return f.wait(ctx, c.service)
}

// Invalidate forgets token, which the service has refused, unless a newer one has taken its place.
func (c *Credentials) Invalidate(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.token = ""
	}
}

// Project returns the project that the credential belongs to: the key file's project_id, or the
// metadata server's answer. It is remembered once it is known. A credential that names none is a
// config error, code "invalid_project".
func (c *Credentials) Project(ctx context.Context) (string, error) {
	c.mu.Lock()
	switch {
	case c.project != "":
		defer c.mu.Unlock()
		return c.project, nil
	case c.closed:
		c.mu.Unlock()
		return "", c.errClosed()
	case c.asked == nil:
		f := &flight{done: make(chan struct{})}
		c.asked = f
		c.wg.Go(func() { // ends with the look-up, which ends at its timeout or at Close
			f.value, f.err = c.bounded(c.lookUpProject)
			c.mu.Lock()
			c.asked = nil
			c.project = f.value
			c.mu.Unlock()
			close(f.done)
		})
	}
	f := c.asked
	c.mu.Unlock()
	return f.wait(ctx, c.service)
}

// Source says where the current token came from, such as "metadata server at 169.254.169.254" or a
// path; empty before the first successful look-up.
func (c *Credentials) Source() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source
}

// Close ends look-ups, waits for them, and makes Token and Project fail once what is in memory no
// longer serves. Twice is fine.
func (c *Credentials) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

func (c *Credentials) errClosed() error {
	return classify.Transientf(c.service, codeNoCredentials, "the credentials are closed")
}

// lookUpTokenLocked starts a look-up; c.mu is held and no other is under way.
func (c *Credentials) lookUpTokenLocked() {
	f := &flight{done: make(chan struct{})}
	c.tokens = f
	c.wg.Go(func() { // ends with the look-up, which ends at its timeout or at Close
		var got grant
		f.value, f.err = c.bounded(func(ctx context.Context) (string, error) {
			var err error
			got, err = c.lookUpToken(ctx)
			return got.token, err
		})
		now := time.Now()
		c.mu.Lock()
		c.tokens = nil
		if f.err == nil {
			c.keepLocked(got, now)
		}
		serves := f.err != nil && c.token != "" && now.Before(c.overAt)
		c.mu.Unlock()
		close(f.done)
		if serves && c.warn != nil {
			c.warn(f.err)
		}
	})
}

// keepLocked remembers a token that has just arrived.
func (c *Credentials) keepLocked(g grant, now time.Time) {
	c.token, c.source = g.token, g.source
	c.overAt, c.renewAt = g.expiry, time.Time{}
	if c.project == "" {
		c.project = g.project
	}
	if g.expiry.IsZero() {
		return
	}
	if least := now.Add(leastService); c.overAt.Before(least) {
		c.overAt = least
	}
	life := c.overAt.Sub(now)
	c.renewAt = c.overAt.Add(-min(renewAhead, life/4))
}

// bounded runs a look-up within the timeout and until Close.
func (c *Credentials) bounded(look func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.timeout, errLookupTimeout)
	defer cancel()
	value, err := look(ctx)
	if err != nil {
		return "", err
	}
	return value, nil
}

var errLookupTimeout = errors.New("timeout")

// wait returns the result of the look-up, or gives up waiting when ctx ends.
func (f *flight) wait(ctx context.Context, service string) (string, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return "", &classify.Error{
			Class: classify.Transient, Service: service, Code: wire.CodeNotSent,
			Message: "given up by the sender while it waited for a token", Err: context.Cause(ctx),
		}
	}
}
