package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/output"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// ownCredentials are the output's, which a store of the same cloud uses.
type ownCredentials struct {
	scheme  string // of the stores that they serve
	aws     *sqs.CachedCredentials
	region  string
	google  *pubsub.Credentials
	missing bool // they were looked for in vain
}

// store checks the store of bodies too big for a message by writing a probe.
func (c *check) store(ctx context.Context, own ownCredentials) {
	switch {
	case !c.wraps():
		return // what is too big has been stored by whoever made the messages
	case c.common.ClaimStore == "":
		c.warn("store", "set claim_check.store, for example s3://bucket", "none is configured: a body over inline_max_bytes %s that carries no claim is refused for good", group(c.common.InlineMaxBytes))
		return
	}
	u, err := claim.ParseStoreURL(c.common.ClaimStore)
	if err != nil {
		c.fail("store", "correct claim_check.store", "%v", err)
		return
	}
	if u.Scheme == own.scheme && own.missing {
		c.skip("store", "", "%s: not looked at, because there are no credentials", u)
		return
	}
	store, err := output.OpenStore(u, output.StoreOptions{
		AWS: own.aws, Region: own.region, Google: own.google,
		Timeout: min(c.common.Timeout, c.timeout), LookupTimeout: c.timeout, TLS: c.common.TLS, Getenv: c.getenv,
		Resources: c.pipeline.caches,
	})
	if err != nil {
		c.fail("store", "correct claim_check.store", "%s: %s", u, reason(err))
		return
	}
	defer func() { _ = store.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := c.within(ctx)
	defer cancel()
	err = store.Check(ctx)
	left, isLeft := errors.AsType[*claim.LeftoverError](err)
	switch {
	case err == nil:
		c.ok("store", "%s can be written", u)
	case isLeft:
		c.warn("store", "none is needed: sending takes the right to write only; remove the probe by hand if you like", "%s: claims can be stored, and the probe %s could not be removed: %s", u, left.Key, reason(left.Err))
	default:
		c.fail("store", "check that it exists and that these credentials may write below claims/", "%s can't be written: %s", u, reason(err))
	}
}

// caches builds the file's cache resources and nothing else of it.
func (p *pipeline) caches() (*service.Resources, func(), error) {
	builder := service.NewResourceBuilder()
	builder.DisableLinting()
	builder.SetLogger(slog.New(slog.DiscardHandler))
	for _, file := range p.files {
		var doc struct {
			Caches yaml.Node `yaml:"cache_resources"`
		}
		if err := yaml.Unmarshal(file, &doc); err != nil {
			return nil, nil, fmt.Errorf("the cache resources can't be told from the rest of the file: %w", err)
		}
		if doc.Caches.IsZero() {
			continue
		}
		var text bytes.Buffer
		if err := yaml.NewEncoder(&text).Encode(map[string]*yaml.Node{"cache_resources": &doc.Caches}); err != nil {
			return nil, nil, err
		}
		if err := builder.AddYAML(text.String()); err != nil { // the environment is interpolated here
			return nil, nil, err
		}
	}
	res, end, err := builder.BuildSuspended()
	if err != nil {
		return nil, nil, err
	}
	return res, func() { _ = end(context.Background()) }, nil
}
