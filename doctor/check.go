package doctor

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// doctor checks one pipeline.
type doctor struct {
	options
	pipeline *pipeline
	report   *report
}

// check is the examination of one output.
type check struct {
	*doctor
	*report
	out    *component
	common config.Common
	wire   *wire.Client
	clock  time.Duration // to add to the local clock to get the service's
}

// checkFile says what keeps `run` from starting.
func (d *doctor) checkFile() {
	if len(d.pipeline.lints) == 0 {
		return
	}
	d.report.heading("%s", d.file)
	for _, l := range d.pipeline.lints {
		d.report.fail("lint", "", "%s%s (run refuses to start on it)", l.file, l.text)
	}
}

// checkOutput examines one output.
func (d *doctor) checkOutput(ctx context.Context, out *component) {
	where := out.path
	if out.label != "" {
		where += fmt.Sprintf(" %q", out.label)
	}
	if out.line > 0 {
		where += fmt.Sprintf(", line %d", out.line)
	}
	d.report.heading("%s: %s", out.name, where)
	c := &check{doctor: d, report: d.report, out: out}
	if out.name == nameSQS {
		c.sqs(ctx)
	} else {
		c.pubsub(ctx)
	}
}

// parse reads the output's configuration with the output's own parser. Where that refuses it, what
// does not depend on it is checked all the same.
func parse[T any](c *check, spec *service.ConfigSpec, read func(*service.ParsedConfig) (T, error)) (parsed T, ok bool) {
	conf, err := spec.ParseYAML(c.out.yaml, nil)
	if err == nil {
		parsed, err = read(conf)
	}
	if err != nil {
		c.fail("config", "", "%v", err)
		c.fallback()
		return parsed, false
	}
	return parsed, true
}

// open makes the client for the output's requests. The output's own timeout counts where it is the
// shorter one: what takes longer fails when it runs, too.
func (c *check) open(service string) {
	c.wire = wire.New(wire.Options{Service: service, Timeout: min(c.common.Timeout, c.timeout), TLS: c.common.TLS, Dial: c.dial})
}

// within bounds one look-up or request.
func (c *check) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within --timeout %v", c.timeout))
}

// order looks at what reorders messages before an output that keeps their order.
func (c *check) order() {
	if !c.common.Ordered {
		return
	}
	switch threads := c.pipeline.threads; {
	case c.pipeline.processors == 0:
		c.ok("threads", "no processors in the pipeline, so nothing there reorders")
	case threads == 1:
		c.ok("threads", "pipeline.threads is 1")
	case threads < 1:
		c.warn("threads", "set pipeline.threads: 1", "pipeline.threads is %d, which is one per core: they reorder messages before this output sees them", threads)
	default:
		c.warn("threads", "set pipeline.threads: 1", "pipeline.threads is %d: they reorder messages before this output sees them", threads)
	}
	if n := c.common.MaxInFlight; n > 1 {
		c.warn("in flight", "set max_in_flight: 1, or leave it out", "max_in_flight is %s: concurrent writes reach the service in any order", group(n))
	} else {
		c.ok("in flight", "max_in_flight is 1")
	}
}

// fallback says what becomes of a hook that is refused for good.
func (c *check) fallback() {
	for _, f := range c.pipeline.fallbacks(c.out) {
		c.add(f)
	}
}

// encoded is what a body of n bytes takes at least in a message: its base64. The rest of the message
// differs from hook to hook.
func encoded(n int) int { return base64.StdEncoding.EncodedLen(n) }

// inline checks that a body which may travel inside a message fits into one. limit is the largest
// message that gets through, and whose says who sets it.
func (c *check) inline(limit int, whose string) {
	if !c.wraps() {
		return
	}
	if size := encoded(c.common.InlineMaxBytes); size >= limit {
		c.warn("inline", fmt.Sprintf("lower inline_max_bytes below %s and set claim_check.store", group(limit/4*3)),
			"a body of inline_max_bytes %s is %s bytes in base64, and %s takes messages of %s: such bodies are refused for good",
			group(c.common.InlineMaxBytes), group(size), whose, group(limit))
	}
}

// wraps reports whether the output makes messages of bodies. With format ankusa they are made already.
func (c *check) wraps() bool { return c.common.Hook.Format != config.FormatAnkusa }

// orNothing is s, or a word for its absence.
func orNothing(s string) string {
	if strings.TrimSpace(s) == "" {
		return "(nothing)"
	}
	return s
}
