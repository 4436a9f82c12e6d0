package output

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/cachestore"
	"github.com/ankusa-connect/ankusa-connect/claim/dirstore"
	"github.com/ankusa-connect/ankusa-connect/claim/gcsstore"
	"github.com/ankusa-connect/ankusa-connect/claim/s3store"
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// StoreOptions are what an output opens its store with.
type StoreOptions struct {
	// AWS, with Region, and Google are the output's own credentials, and stay its own to close. An
	// output of the other cloud has none for its store: nil takes that cloud's default chain.
	AWS    *sqs.CachedCredentials
	Region string
	Google *pubsub.Credentials
	// GoogleJSON is the content of a credential file for a gs store, where Google is nil: an output
	// towards an emulator has no credentials of its own, and its store may be a real one.
	GoogleJSON string

	Timeout       time.Duration       // of a request, see wire.Options
	LookupTimeout time.Duration       // of a credential look-up that the store needs; zero is that chain's default
	TLS           *tls.Config         // nil means Go's defaults
	Getenv        func(string) string // nil is os.Getenv

	// Resources provides the cache resources, for a cache store; its func gives them back and may be nil.
	Resources func() (*service.Resources, func(), error)
}

// GoogleScopes are the scopes that an output's Google credentials need: those of Pub/Sub and, when its
// store is a bucket of Cloud Storage, those of that.
func GoogleScopes(c config.Common) []string {
	scopes := []string{pubsub.Scope}
	if u, err := claim.ParseStoreURL(c.ClaimStore); err == nil && u.Scheme == claim.SchemeGCS {
		scopes = append(scopes, pubsub.StorageScope)
	}
	return scopes
}

// OpenStore opens the store of bodies too big for a message. It dials nobody. Closing the store gives
// back whatever was opened for it.
func OpenStore(u claim.StoreURL, o StoreOptions) (claim.Store, error) {
	out := &openedStore{}
	var err error
	switch u.Scheme {
	case claim.SchemeS3:
		credentials := o.AWS
		if credentials == nil {
			if credentials, err = sqs.LoadCredentials(sqs.CredentialOptions{Region: u.Region}); err != nil {
				return nil, err
			}
			out.closers = append(out.closers, credentials.Close)
		}
		if o.Region == "" && u.Region == "" {
			if o.Region, err = sqs.ResolveRegion("", "", o.Getenv); err != nil {
				err = fmt.Errorf("%s: the bucket's region is not known: add ?region=, or set AWS_REGION", u)
				break
			}
		}
		out.Store, err = s3store.New(u, s3store.Options{
			Credentials: credentials, Region: o.Region, Timeout: o.Timeout, TLS: o.TLS, MaxIdleConns: maxUploads, Getenv: o.Getenv,
		})
	case claim.SchemeGCS:
		credentials := o.Google
		if credentials == nil {
			if credentials, err = pubsub.NewCredentials(pubsub.CredentialOptions{
				JSON: o.GoogleJSON, Scopes: []string{pubsub.StorageScope}, Service: gcsstore.Service, TLS: o.TLS, Getenv: o.Getenv, LookupTimeout: o.LookupTimeout,
			}); err != nil {
				return nil, err
			}
			out.closers = append(out.closers, credentials.Close)
		}
		out.Store, err = gcsstore.New(u, gcsstore.Options{
			Tokens: credentials, Timeout: o.Timeout, TLS: o.TLS, MaxIdleConns: maxUploads, Getenv: o.Getenv,
		})
	case claim.SchemeDir:
		out.Store = dirstore.New(u.Path)
	case claim.SchemeCache:
		var res *service.Resources
		var end func()
		if res, end, err = o.Resources(); err != nil {
			return nil, err
		}
		if end != nil {
			out.closers = append(out.closers, end)
		}
		out.Store, err = cachestore.New(u.Label, res)
	}
	if err != nil {
		out.closeRest()
		return nil, err
	}
	return out, nil
}

// openedStore is a store with what was opened for it alone.
type openedStore struct {
	claim.Store
	closers []func()
}

// Close implements claim.Store.
func (s *openedStore) Close(ctx context.Context) error {
	err := s.Store.Close(ctx)
	s.closeRest()
	return err
}

func (s *openedStore) closeRest() {
	for _, f := range s.closers {
		f()
	}
	s.closers = nil
}

// openStore opens the configured store; nil when there is none.
func openStore(c config.Common, res *service.Resources, o options, own StoreOptions) (claim.Store, error) {
	if o.openStore != nil {
		return o.openStore()
	}
	if c.ClaimStore == "" {
		return nil, nil
	}
	u, err := claim.ParseStoreURL(c.ClaimStore)
	if err == nil {
		own.Timeout, own.TLS, own.Getenv = c.Timeout, c.TLS, o.getenv
		own.Resources = func() (*service.Resources, func(), error) { return res, nil, nil }
		var store claim.Store
		if store, err = OpenStore(u, own); err == nil {
			return store, nil
		}
	}
	return nil, fmt.Errorf("field claim_check.store: %w", err)
}
