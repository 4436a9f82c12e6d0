package config

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// The values of hook.format.
const (
	FormatRaw    = "raw"    // the body is a provider's, the fields of hook describe it
	FormatAnkusa = "ankusa" // the body is an Ankusa message already
)

// Hook says how a Benthos message becomes a hook. A nil expression means the field is not configured
// and its metadata default applies.
type Hook struct {
	Format string

	ID, SourceID, TenantID, ReceivedAt, ContentType *service.InterpolatedString
	DedupeKey, ReplayID                             *service.InterpolatedString
	Claim, ClaimSHA256, ClaimSize                   *service.InterpolatedString

	// ForwardHeaders names the headers that travel. Nil is the default rule, empty is none.
	ForwardHeaders []string
}

// Attribute is one configured extra attribute.
type Attribute struct {
	Name  string
	Value *service.InterpolatedString
}

// Batch is the scheduler's part of the configuration.
type Batch struct {
	Enabled                                 bool
	Linger                                  time.Duration
	MaxEntries, MaxBytes                    int
	QueueMax, QueueMaxBytes, QueueTenantMax int
	MaxRequests                             int
	StrictOrder                             bool
}

// Retry limits the retries inside the output.
type Retry struct {
	MaxRetries                   int           // 0: no count limit
	InitialInterval, MaxInterval time.Duration // bounds of the first and of any pause
	MaxElapsedTime               time.Duration // from a message's first send; 0: no limit
}

// Common is what both outputs share.
type Common struct {
	Hook            Hook
	Attributes      []Attribute // sorted by name
	InlineMaxBytes  int
	MaxMessageBytes int
	ClaimStore      string // URL; empty when none is configured
	Timeout         time.Duration
	TLS             *tls.Config
	Batch           Batch
	Retry           Retry

	// Ordered reports that the order of messages matters: a FIFO queue, or an ordering key.
	Ordered bool

	MaxInFlight int
	Batching    service.BatchPolicy
}

// parseCommon reads the shared fields. ordered decides the defaults that depend on it.
func parseCommon(conf *service.ParsedConfig, l limits, ordered bool) (c Common, err error) {
	c.Ordered = ordered
	p := parser{conf: conf, err: &err}
	c.Hook = p.hook()
	c.Attributes = p.attributes()
	c.InlineMaxBytes = p.intIn(0, l.maxMessageBytes, fieldInlineMaxBytes)
	c.MaxMessageBytes = p.intIn(1, l.maxMessageBytes, fieldMaxMessageBytes)
	c.ClaimStore = p.string(fieldClaimCheck, fieldStore)
	c.Timeout = p.durationIn(time.Millisecond, 10*time.Minute, fieldTimeout)
	if err == nil {
		c.TLS, err = conf.FieldTLS(fieldTLS)
	}
	c.Batch = Batch{
		Enabled:        p.bool(fieldBatch, fieldEnabled),
		Linger:         p.durationIn(MinLinger, MaxLinger, fieldBatch, fieldLinger),
		MaxEntries:     p.intIn(1, l.maxEntries, fieldBatch, fieldMaxEntries),
		MaxBytes:       p.intIn(1, l.maxBytesCap, fieldBatch, fieldMaxBytes),
		QueueMax:       p.intIn(1, 0, fieldBatch, fieldQueueMax),
		QueueMaxBytes:  p.intIn(1, 0, fieldBatch, fieldQueueMaxBytes),
		QueueTenantMax: p.intIn(1, 0, fieldBatch, fieldQueueTenantMax),
		MaxRequests:    p.intIn(1, 1024, fieldBatch, fieldMaxRequests),
		StrictOrder:    p.bool(fieldBatch, fieldStrictOrder),
	}
	c.Retry = Retry{
		MaxRetries:      p.intIn(0, 0, fieldMaxRetries),
		InitialInterval: p.durationIn(time.Millisecond, time.Hour, fieldBackoff, fieldInitialInterval),
		MaxInterval:     p.durationIn(time.Millisecond, 24*time.Hour, fieldBackoff, fieldMaxInterval),
	}
	switch {
	case conf.Contains(fieldBackoff, fieldMaxElapsedTime):
		c.Retry.MaxElapsedTime = p.durationIn(0, 0, fieldBackoff, fieldMaxElapsedTime)
	case !ordered:
		c.Retry.MaxElapsedTime = DefaultMaxElapsedTime
	}
	if err == nil && c.Retry.InitialInterval > c.Retry.MaxInterval {
		err = fmt.Errorf("backoff.initial_interval %v is above backoff.max_interval %v", c.Retry.InitialInterval, c.Retry.MaxInterval)
	}
	switch {
	case conf.Contains(fieldMaxInFlight):
		c.MaxInFlight = p.intIn(1, 100_000, fieldMaxInFlight)
	case ordered:
		// A second write would run beside the first and reach the queue in any order.
		c.MaxInFlight = 1
	default:
		c.MaxInFlight = l.maxInFlight
	}
	if err == nil {
		c.Batching, err = conf.FieldBatchPolicy(fieldBatching)
	}
	if err == nil && ordered && unset(c.Batching) {
		c.Batching = orderedBatching(c.Batching, c.Batch)
	}
	return c, err
}

// unset reports whether the user left batching alone. `count: 1` is the way to turn it off.
func unset(p service.BatchPolicy) bool {
	return p.Count == 0 && p.ByteSize == 0 && p.Period == "" && p.Check == ""
}

// orderedBatching is batching's default where order matters. With one write at a time, that write has
// to hold enough messages to keep every permitted request busy, several groups side by side, and for
// several rounds: at the end of a write requests run out of messages, and the fewer rounds a write has,
// the larger that end is. With four rounds 6 requests of 8 were in flight on average, with eight 6.6.
func orderedBatching(p service.BatchPolicy, b Batch) service.BatchPolicy {
	p.Count = min(8*b.MaxEntries*b.MaxRequests, 1000)
	p.Period = b.Linger.String()
	return p
}

// parser reads fields until the first error and then returns zero values, so that parse functions
// read as a list of fields.
type parser struct {
	conf *service.ParsedConfig
	err  *error
}

func (p parser) fail(path []string, format string, args ...any) {
	if *p.err == nil {
		*p.err = fmt.Errorf("field %s: "+format, append([]any{strings.Join(path, ".")}, args...)...)
	}
}

func (p parser) string(path ...string) string {
	if *p.err != nil || !p.conf.Contains(path...) {
		return ""
	}
	s, err := p.conf.FieldString(path...)
	if err != nil {
		p.fail(path, "%w", err)
	}
	return s
}

func (p parser) bool(path ...string) bool {
	if *p.err != nil {
		return false
	}
	b, err := p.conf.FieldBool(path...)
	if err != nil {
		p.fail(path, "%w", err)
	}
	return b
}

// intIn reads a whole number of at least lo and, unless hi is 0, at most hi.
func (p parser) intIn(lo, hi int, path ...string) int {
	if *p.err != nil {
		return 0
	}
	n, err := p.conf.FieldInt(path...)
	switch {
	case err != nil:
		p.fail(path, "%w", err)
	case n < lo:
		p.fail(path, "must be at least %s, got %s", group(lo), group(n))
	case hi > 0 && n > hi:
		p.fail(path, "must be %s to %s, got %s", group(lo), group(hi), group(n))
	}
	return n
}

// durationIn reads a duration of at least lo and, unless hi is 0, at most hi.
func (p parser) durationIn(lo, hi time.Duration, path ...string) time.Duration {
	if *p.err != nil {
		return 0
	}
	d, err := p.conf.FieldDuration(path...)
	switch {
	case err != nil:
		p.fail(path, "%w", err)
	case d < lo:
		p.fail(path, "must be at least %v, got %v", lo, d)
	case hi > 0 && d > hi:
		p.fail(path, "must be %v to %v, got %v", lo, hi, d)
	}
	return d
}

// interpolated reads an optional expression; nil when it is not configured.
func (p parser) interpolated(path ...string) *service.InterpolatedString {
	if *p.err != nil || !p.conf.Contains(path...) {
		return nil
	}
	s, err := p.conf.FieldInterpolatedString(path...)
	if err != nil {
		p.fail(path, "%w", err)
		return nil
	}
	return s
}

func (p parser) hook() (h Hook) {
	h.Format = p.string(fieldHook, fieldFormat)
	field := func(name string) *service.InterpolatedString { return p.interpolated(fieldHook, name) }
	h.ID = field(fieldID)
	h.SourceID = field(fieldSourceID)
	h.TenantID = field(fieldTenantID)
	h.ReceivedAt = field(fieldReceivedAt)
	h.ContentType = field(fieldContentType)
	h.DedupeKey = field(fieldDedupeKey)
	h.ReplayID = field(fieldReplayID)
	h.Claim = field(fieldClaim)
	h.ClaimSHA256 = field(fieldClaimSHA256)
	h.ClaimSize = field(fieldClaimSize)
	if v, err := p.conf.FieldAny(fieldHook, fieldForwardHeaders); *p.err == nil && err == nil && v != nil {
		names, err := p.conf.FieldStringList(fieldHook, fieldForwardHeaders)
		if err != nil {
			p.fail([]string{fieldHook, fieldForwardHeaders}, "%w", err)
		}
		h.ForwardHeaders = append([]string{}, names...)
	}
	if h.SourceID != nil {
		if s, static := h.SourceID.Static(); static && s == "" {
			p.fail([]string{fieldHook, fieldSourceID}, "is required: set it to the webhook source's name, or leave the field out to take the metadata ankusa_source_id")
		}
	}
	return h
}

func (p parser) attributes() (out []Attribute) {
	if *p.err != nil || !p.conf.Contains(fieldAttributes) {
		return nil
	}
	m, err := p.conf.FieldInterpolatedStringMap(fieldAttributes)
	if err != nil {
		p.fail([]string{fieldAttributes}, "%w", err)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "ankusa_") || lower == "content_type" {
			p.fail([]string{fieldAttributes}, "%q is one of the message's own attributes and can't be replaced; choose another name", name)
		}
		out = append(out, Attribute{Name: name, Value: m[name]})
	}
	return out
}
