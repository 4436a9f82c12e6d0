package gcsstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/internal/buffer"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// Service is the name that errors of this package bear.
const Service = "gs"

// chunk is how much of an object one request reads; a whole reply must fit wire.MaxReplyBytes.
const chunk = 512 << 10

// TokenSource hands out access tokens; those of the Pub/Sub output are one.
type TokenSource interface {
	// Token returns a token. An error that is a *classify.Error keeps its class; any other is
	// transient, no_credentials.
	Token(ctx context.Context) (string, error)
	// Invalidate says that the service refused token.
	Invalidate(token string)
}

// Options configure a Store.
type Options struct {
	// Tokens authorise the requests. They need a scope that includes writing to Cloud Storage. Nil
	// sends no authorization.
	Tokens TokenSource
	// Endpoint is scheme and host of the server. Empty is STORAGE_EMULATOR_HOST's, else
	// DefaultEndpoint.
	Endpoint string
	// Timeout limits the connection's coming about, the reply (counted from the last byte written)
	// and every stall while the object is written. Zero means wire.DefaultTimeout.
	Timeout time.Duration
	// TLS is the base of the TLS configuration; nil means Go's defaults.
	TLS *tls.Config
	// MaxIdleConns is how many idle connections are kept; at least the number of Puts at once.
	// Zero means wire's default.
	MaxIdleConns int
	// Getenv looks up the environment. Nil is os.Getenv.
	Getenv func(string) string
}

// Store is a claim.Store and claim.RangeReader over one bucket.
type Store struct {
	bucket   string
	endpoint string
	tokens   TokenSource // nil: none is sent
	wire     *wire.Client
}

var (
	_ claim.Store       = (*Store)(nil)
	_ claim.RangeReader = (*Store)(nil)
)

// New returns a Store over u's bucket, whose scheme must be gs. It checks what it is given, and
// neither dials nor asks for a token. An error is config.
func New(u claim.StoreURL, o Options) (*Store, error) {
	if u.Scheme != claim.SchemeGCS {
		return nil, classify.Configf(Service, "invalid_option", "%s is not a gs:// store", u)
	}
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	endpoint, token, err := resolveEndpoint(o.Endpoint, getenv)
	if err != nil {
		return nil, err
	}
	s := &Store{
		bucket:   u.Bucket,
		endpoint: endpoint,
		wire: wire.New(wire.Options{
			Service:             Service,
			Timeout:             o.Timeout,
			TLS:                 o.TLS,
			MaxIdleConnsPerHost: o.MaxIdleConns,
		}),
	}
	if token {
		s.tokens = o.Tokens
	}
	return s, nil
}

// Put implements claim.Store.
func (s *Store) Put(ctx context.Context, o *claim.Object) error {
	b := buffer.Get(o.Size())
	defer buffer.Put(b) // wire doesn't touch it once Do is back
	*b = o.AppendTo(*b)
	reply, err := s.do(ctx, &wire.Request{
		Method: http.MethodPost,
		URL:    s.endpoint + "/upload/storage/v1/b/" + url.PathEscape(s.bucket) + "/o?uploadType=media&name=" + url.QueryEscape(o.Key()),
		Header: http.Header{"Content-Type": {claim.ContentType}},
		Body:   *b,
	}, o.Key())
	if err == nil {
		return s.confirm(reply, o)
	}
	if err.Status == http.StatusForbidden && err.Class == classify.Config && s.holds(ctx, o) {
		return nil
	}
	return err
}

// holds reports whether the bucket is known to hold exactly the object.
func (s *Store) holds(ctx context.Context, o *claim.Object) bool {
	reply, err := s.do(ctx, &wire.Request{Method: http.MethodGet, URL: s.objectURL(o.Key())}, o.Key())
	return err == nil && s.confirm(reply, o) == nil
}

// ReadRange implements claim.RangeReader.
func (s *Store) ReadRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	var all []byte
	for int64(len(all)) < length {
		from := offset + int64(len(all))
		n := min(length-int64(len(all)), chunk)
		reply, err := s.do(ctx, &wire.Request{
			Method: http.MethodGet,
			URL:    s.objectURL(key) + "?alt=media",
			Header: http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", from, from+n-1)}},
		}, key)
		switch {
		case err != nil && err.Status == http.StatusRequestedRangeNotSatisfiable: // nothing behind the end
			return all, nil
		case err != nil && err.Status == http.StatusNotFound && !isNoBucket(err):
			return nil, &classify.Error{Class: classify.Permanent, Service: Service, Status: err.Status, Code: claim.CodeNotFound, Message: err.Message, Err: err}
		case err != nil:
			return nil, err
		case int64(len(reply.Body)) > n:
			return nil, &classify.Error{Service: Service, Status: reply.Status, Code: "unexpected_reply", Message: "the server ignores ranges"}
		}
		all = append(all, reply.Body...)
		if int64(len(reply.Body)) < n {
			break
		}
	}
	return all, nil
}

// Check implements claim.Store.
func (s *Store) Check(ctx context.Context) error {
	probe := claim.Probe()
	if err := s.Put(ctx, probe); err != nil {
		return err
	}
	_, err := s.do(ctx, &wire.Request{Method: http.MethodDelete, URL: s.objectURL(probe.Key())}, probe.Key())
	if err != nil && err.Status != http.StatusNotFound { // another doctor was faster
		return &claim.LeftoverError{Key: probe.Key(), Err: err}
	}
	return nil
}

// Close implements claim.Store. Requests still under way are ended.
func (s *Store) Close(context.Context) error {
	s.wire.Close()
	return nil
}

// objectURL is the address of an object, whose key is one segment of the path however many slashes
// it has.
func (s *Store) objectURL(key string) string {
	return s.endpoint + "/storage/v1/b/" + url.PathEscape(s.bucket) + "/o/" + url.PathEscape(key)
}

// do sends one request and returns its answer if that is a success. A 401 has the token replaced
// and the request sent once more.
func (s *Store) do(ctx context.Context, r *wire.Request, key string) (*wire.Reply, *classify.Error) {
	for again := true; ; again = false {
		// A header of its own for each try: the one of a request that was given up may still be
		// being read.
		header := r.Header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("User-Agent", "ankusa-connect")
		token := ""
		if s.tokens != nil {
			var err error
			if token, err = s.tokens.Token(ctx); err != nil {
				return nil, foreign(err)
			}
			header.Set("Authorization", "Bearer "+token)
		}
		reply, err := s.wire.Do(ctx, &wire.Request{Method: r.Method, URL: r.URL, Header: header, Body: r.Body})
		if err != nil {
			return nil, classify.Of(err)
		}
		if reply.Status == http.StatusUnauthorized && token != "" {
			s.tokens.Invalidate(token)
			if again && ctx.Err() == nil {
				continue
			}
		}
		if reply.Status/100 != 2 {
			return nil, s.fail(reply, key)
		}
		if reply.Truncated {
			return nil, &classify.Error{
				Service: Service, Status: reply.Status, Code: "unexpected_reply", Err: reply.Err,
				Message: fmt.Sprintf("the answer broke off or is too long: %s", wire.Excerpt(reply.Body)),
			}
		}
		return reply, nil
	}
}
