package output

import (
	"context"
	"fmt"

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

// openStore opens the configured store of bodies too big for a message; nil when there is none. It
// dials nobody.
//
// A store uses the output's own credentials. An output of the other cloud has none for it, and takes
// that cloud's default chain.
func openStore(c config.Common, res *service.Resources, o options, own ownCredentials) (*openedStore, error) {
	if o.openStore != nil {
		store, err := o.openStore()
		return &openedStore{Store: store}, err
	}
	if c.ClaimStore == "" {
		return nil, nil
	}
	u, err := claim.ParseStoreURL(c.ClaimStore)
	if err != nil {
		return nil, fmt.Errorf("field claim_check.store: %w", err)
	}
	out := &openedStore{}
	switch u.Scheme {
	case claim.SchemeS3:
		credentials := own.aws
		if credentials == nil {
			if credentials, err = sqs.LoadCredentials(sqs.CredentialOptions{Region: u.Region}); err != nil {
				return nil, err
			}
			out.closers = append(out.closers, credentials.Close)
		}
		if own.region == "" {
			// Only an output without a region of its own has to look: its bucket's may stand nowhere else.
			own.region, _ = sqs.ResolveRegion("", "", o.getenv)
		}
		out.Store, err = s3store.New(u, s3store.Options{
			Credentials: credentials, Region: own.region, Timeout: c.Timeout, TLS: c.TLS, MaxIdleConns: maxUploads, Getenv: o.getenv,
		})
	case claim.SchemeGCS:
		credentials := own.google
		if credentials == nil {
			if credentials, err = pubsub.NewCredentials(pubsub.CredentialOptions{Service: gcsstore.Service, TLS: c.TLS, Getenv: o.getenv}); err != nil {
				return nil, err
			}
			out.closers = append(out.closers, credentials.Close)
		}
		out.Store, err = gcsstore.New(u, gcsstore.Options{
			Tokens: credentials, Timeout: c.Timeout, TLS: c.TLS, MaxIdleConns: maxUploads, Getenv: o.getenv,
		})
	case claim.SchemeDir:
		out.Store = dirstore.New(u.Path)
	case claim.SchemeCache:
		out.Store, err = cachestore.New(u.Label, res)
	}
	if err != nil {
		return nil, fmt.Errorf("field claim_check.store: %w", err)
	}
	return out, nil
}

// ownCredentials are those of the output that opens a store.
type ownCredentials struct {
	aws    *sqs.CachedCredentials
	region string
	google *pubsub.Credentials
}

// openedStore is a store with what was opened for it alone.
type openedStore struct {
	claim.Store
	closers []func()
}

// close gives everything back. No upload runs any more.
func (s *openedStore) close(ctx context.Context) error {
	err := s.Store.Close(ctx)
	for _, c := range s.closers {
		c()
	}
	return err
}
