package cachestore

import (
	"bytes"
	"context"
	"errors"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Service is the name that errors of this package bear.
const Service = "cache"

// Store is a claim.Store and claim.RangeReader over a cache resource. The resource belongs to
// Benthos, which opens and closes it.
type Store struct {
	label string
	res   *service.Resources
}

var (
	_ claim.Store       = (*Store)(nil)
	_ claim.RangeReader = (*Store)(nil)
)

// New returns a Store over the cache resource with that label. An error is config: there is none.
func New(label string, res *service.Resources) (*Store, error) {
	s := &Store{label: label, res: res}
	if !res.HasCache(label) {
		return nil, s.missing()
	}
	return s, nil
}

// Put implements claim.Store.
func (s *Store) Put(ctx context.Context, o *claim.Object) error {
	value := o.AppendTo(make([]byte, 0, o.Size()))
	return s.access(ctx, "store "+o.Key(), func(c service.Cache) error {
		return c.Set(ctx, o.Key(), value, nil)
	})
}

// ReadRange implements claim.RangeReader. A cache has no ranges: each call gets the whole object.
func (s *Store) ReadRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	var value []byte
	err := s.access(ctx, "read "+key, func(c service.Cache) (err error) {
		value, err = c.Get(ctx, key)
		return err
	})
	if errors.Is(err, service.ErrKeyNotFound) {
		return nil, classify.Permanentf(Service, claim.CodeNotFound, "the cache %s holds no %s", s.label, key)
	}
	if err != nil {
		return nil, err
	}
	size := int64(len(value))
	offset = min(offset, size)
	// A copy: the cache may still own what it handed out.
	return bytes.Clone(value[offset : offset+min(length, size-offset)]), nil
}

// Check implements claim.Store.
func (s *Store) Check(ctx context.Context) error {
	probe := claim.Probe()
	if err := s.Put(ctx, probe); err != nil {
		return err
	}
	err := s.access(ctx, "delete "+probe.Key(), func(c service.Cache) error {
		return c.Delete(ctx, probe.Key())
	})
	if err != nil && !errors.Is(err, service.ErrKeyNotFound) {
		return &claim.LeftoverError{Key: probe.Key(), Err: err}
	}
	return nil
}

// Close implements claim.Store. The cache is Benthos's to close.
func (s *Store) Close(context.Context) error { return nil }

// access calls do with the cache. Resources can come and go while a stream runs, so a missing one
// is found here too.
func (s *Store) access(ctx context.Context, action string, do func(service.Cache) error) error {
	var err error
	if accessErr := s.res.AccessCache(ctx, s.label, func(c service.Cache) { err = do(c) }); accessErr != nil {
		if !s.res.HasCache(s.label) {
			return s.missing()
		}
		err = accessErr
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return classify.Transientf(Service, "", "given up by the sender: %w", err)
	}
	return classify.Transientf(Service, "", "the cache %s can't %s: %w", s.label, action, err)
}

func (s *Store) missing() error {
	return classify.Configf(Service, "no_cache", "there is no cache resource labelled %q: declare it under cache_resources", s.label)
}
