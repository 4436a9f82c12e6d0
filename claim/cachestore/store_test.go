package cachestore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/claim/internal/storetest"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// faulty is a cache that fails as it is told, for the errors that a memory cache has not.
type faulty struct{ set, delete error }

func (f *faulty) Get(context.Context, string) ([]byte, error) { return nil, service.ErrKeyNotFound }
func (f *faulty) Set(context.Context, string, []byte, *time.Duration) error {
	return f.set
}

func (f *faulty) Add(context.Context, string, []byte, *time.Duration) error {
	return errors.New("Add isn't expected: a retry has to replace")
}
func (f *faulty) Delete(context.Context, string) error { return f.delete }
func (f *faulty) Close(context.Context) error          { return nil }

// resources builds real resources of Benthos: a memory cache and a faulty one.
func resources(t *testing.T, f *faulty) *service.Resources {
	t.Helper()
	env := service.NewEnvironment()
	if err := env.RegisterCache("faulty", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.Cache, error) {
		return f, nil
	}); err != nil {
		t.Fatal(err)
	}
	b := env.NewResourceBuilder()
	for _, yaml := range []string{"label: claims\nmemory: {}", "label: faulty\nfaulty: {}"} {
		if err := b.AddCacheYAML(yaml); err != nil {
			t.Fatal(err)
		}
	}
	res, closeResources, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeResources(context.Background()); err != nil {
			t.Errorf("closing the resources: %v", err)
		}
	})
	return res
}

func open(t *testing.T, label string, f *faulty) *Store {
	t.Helper()
	s, err := New(label, resources(t, f))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	s := open(t, "claims", &faulty{})
	storetest.Run(t, s, nil)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A memory cache keeps the slice that it is given, and the hook's body is somebody else's next.
func TestCacheDoesNotHoldTheHooksBody(t *testing.T) {
	s := open(t, "claims", &faulty{})
	body := []byte("the body")
	o, ref, sum := storetest.Object(t, "acme", "example", body)
	if err := s.Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got, err := claim.Redeem(t.Context(), s, ref, sum, -1); err != nil || string(got) != "the body" {
		t.Errorf("Redeem after the body's buffer was reused = %q, %v", got, err)
	}
}

func TestMissingCacheIsConfig(t *testing.T) {
	_, err := New("nowhere", resources(t, &faulty{}))
	if e := classify.Of(err); e == nil || e.Class != classify.Config || !strings.HasPrefix(err.Error(), "config: cache no_cache: ") || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("New = %v, want config no_cache that names the label", err)
	}
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	gone := &Store{label: "nowhere", res: resources(t, &faulty{})}
	if e := classify.Of(gone.Put(t.Context(), o)); e == nil || e.Class != classify.Config {
		t.Errorf("Put to a cache that went away = %v, want config", e)
	}
}

func TestFailuresAreTransient(t *testing.T) {
	broken := errors.New("the cache's own words")
	s := open(t, "faulty", &faulty{set: broken})
	o, _, _ := storetest.Object(t, "acme", "example", nil)
	for action, err := range map[string]error{"Put": s.Put(t.Context(), o), "Check": s.Check(t.Context())} {
		if e := classify.Of(err); e == nil || e.Class != classify.Transient || e.Service != "cache" || !errors.Is(err, broken) || !strings.Contains(err.Error(), "own words") {
			t.Errorf("%s = %v, want transient around the cache's error", action, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = open(t, "faulty", &faulty{set: ctx.Err()})
	if err := s.Put(ctx, o); !errors.Is(err, context.Canceled) || classify.Of(err).Class != classify.Transient {
		t.Errorf("Put given up = %v, want transient around context.Canceled", err)
	}
}

func TestCheck(t *testing.T) {
	s := open(t, "claims", &faulty{})
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if _, err := s.ReadRange(t.Context(), claim.ProbeKey, 0, 1); classify.Of(err).Code != claim.CodeNotFound {
		t.Errorf("after Check the probe reads %v, want that it is gone", err)
	}
	err := open(t, "faulty", &faulty{delete: errors.New("no")}).Check(t.Context())
	if left, ok := errors.AsType[*claim.LeftoverError](err); !ok || left.Key != claim.ProbeKey {
		t.Errorf("Check = %v, want a LeftoverError", err)
	}
	// Caches may call it an error to remove what isn't there; another doctor was faster.
	if err := open(t, "faulty", &faulty{delete: service.ErrKeyNotFound}).Check(t.Context()); err != nil {
		t.Errorf("Check that finds its probe gone = %v, want nil", err)
	}
}
