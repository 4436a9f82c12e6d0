package output

import (
	"context"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/batcher"
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/message"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// pubsubCloud is Google Cloud Pub/Sub as output sees it.
type pubsubCloud struct {
	client      *pubsub.Client
	wire        *wire.Client
	credentials *pubsub.Credentials // nil towards an emulator

	topic       field
	orderingKey field
	extra       []extraAttribute
	maxMessage  int
	buffers     sync.Pool // of *pubsubBuffer
}

// pubsubBuffer is the scratch space of one request: its messages' data, one behind the other, and the
// messages themselves.
type pubsubBuffer struct {
	bytes      []byte
	messages   []pubsub.Message
	attributes []pubsub.Attribute
}

// address implements cloud.
func (c *pubsubCloud) address(v *view, i int, it *item) error {
	var err error
	if it.queue, err = v.resolve(&c.topic, i); err != nil {
		return err
	}
	if !c.topic.static {
		if err := pubsub.CheckTopic(it.queue); err != nil {
			return err
		}
	}
	if it.group, err = v.resolve(&c.orderingKey, i); err != nil {
		return err
	}
	it.ordered = it.group != ""
	if it.attributes, err = appendExtra(it.appendOwnAttributes(nil), c.extra, v, i); err != nil {
		return err
	}
	return pubsub.ValidateAttributes(pubsubAttributes(nil, it.attributes), it.group)
}

// measure implements cloud.
func (c *pubsubCloud) measure(it *item) error {
	it.size, it.wire = pubsub.SizeFor(it.messageSize(), pubsubAttributes(nil, it.attributes), it.group)
	return pubsub.ValidateSize(it.size, it.wire, c.maxMessage)
}

// send implements cloud, as sqsCloud's does.
func (c *pubsubCloud) send(ctx context.Context, topic string, items []*item) []error {
	b, _ := c.buffers.Get().(*pubsubBuffer)
	if b == nil {
		b = new(pubsubBuffer)
	}
	need, attributes := 0, 0
	for _, it := range items {
		need += it.messageSize()
		attributes += len(it.attributes)
	}
	if cap(b.bytes) < need {
		b.bytes = make([]byte, 0, need)
	}
	if cap(b.attributes) < attributes {
		b.attributes = make([]pubsub.Attribute, 0, attributes)
	}
	b.bytes, b.attributes, b.messages = b.bytes[:0], b.attributes[:0], b.messages[:0]
	for _, it := range items {
		data := it.raw
		if it.decoded == nil {
			start := len(b.bytes)
			b.bytes = it.appendMessage(b.bytes)
			data = b.bytes[start:]
		}
		start := len(b.attributes)
		b.attributes = pubsubAttributes(b.attributes, it.attributes)
		b.messages = append(b.messages, pubsub.Message{Data: data, Attributes: b.attributes[start:], OrderingKey: it.group})
	}
	errs := c.client.Publish(ctx, topic, b.messages)
	clear(b.messages)
	clear(b.attributes)
	c.buffers.Put(b)
	return errs
}

// pubsubAttributes appends attributes in the client's own type: the client knows nothing of messages.
func pubsubAttributes(dst []pubsub.Attribute, attributes []message.Attribute) []pubsub.Attribute {
	for _, a := range attributes {
		dst = append(dst, pubsub.Attribute(a))
	}
	return dst
}

// close implements cloud.
func (c *pubsubCloud) close(context.Context) error {
	c.wire.Close()
	if c.credentials != nil {
		c.credentials.Close()
	}
	return nil
}

// RegisterPubSub adds the output ankusa_pubsub to an environment.
func RegisterPubSub(env *service.Environment, opts ...Option) error {
	o := newOptions(opts)
	return env.RegisterBatchOutput("ankusa_pubsub", config.PubSubSpec(),
		func(conf *service.ParsedConfig, res *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			c, err := config.ParsePubSub(conf)
			if err != nil {
				return nil, service.BatchPolicy{}, 0, err
			}
			out, err := newPubSub(c, res, o)
			if err != nil {
				return nil, service.BatchPolicy{}, 0, err
			}
			return out, c.Batching, c.MaxInFlight, nil
		})
}

// newPubSub puts the output together. It validates and starts nothing.
func newPubSub(c *config.PubSub, res *service.Resources, o options) (*output, error) {
	if o.pubsub != nil {
		o.pubsub(c)
	}
	log, m := res.Logger(), newMetrics(res.Metrics(), "pubsub")
	endpoint, err := pubsub.ResolveEndpoint(c.Endpoint, o.getenv)
	if err != nil {
		return nil, err
	}
	cloud := &pubsubCloud{
		wire: wire.New(wire.Options{
			Service: "pubsub", Timeout: c.Timeout, TLS: c.TLS, MaxIdleConnsPerHost: c.Batch.MaxRequests, Dial: o.dial,
		}),
		topic:       newField("topic", c.Topic),
		orderingKey: newField("ordering_key", c.OrderingKey),
		extra:       newExtraAttributes(c.Attributes),
		maxMessage:  c.MaxMessageBytes,
	}
	if cloud.topic.static {
		if err := pubsub.CheckTopic(cloud.topic.value); err != nil {
			return nil, err
		}
	}
	clientOptions := pubsub.Options{
		Project:         pubsub.ResolveProject(c.Project, o.getenv),
		Endpoint:        endpoint.URL,
		Wire:            cloud.wire,
		MaxEntries:      c.Batch.MaxEntries,
		MaxBytes:        c.Batch.MaxBytes,
		MaxMessageBytes: c.MaxMessageBytes,
		Observe:         func(o pubsub.Observation) { m.request(o.Entries, o.Latency, o.Outcome()) },
		Bisected:        func() { m.bisections.Incr(1) },
	}
	// Towards an emulator no credential is looked for: a look-up would fail where there is none, and
	// where there is one, its token has no business on plain http.
	if !endpoint.Plaintext {
		cloud.credentials, err = pubsub.NewCredentials(pubsub.CredentialOptions{
			JSON: c.CredentialsJSON, TLS: c.TLS, Getenv: o.getenv,
			Warn: func(err error) {
				log.Warnf("The access token could not be renewed and serves on until it ends: %v", err)
			},
		})
		if err != nil {
			return nil, err
		}
		clientOptions.Tokens, clientOptions.Projects = cloud.credentials, cloud.credentials
	}
	if cloud.client, err = pubsub.New(clientOptions); err != nil {
		return nil, err
	}
	store, err := openStore(c.Common, res, o, ownCredentials{google: cloud.credentials})
	if err != nil {
		return nil, err
	}
	options := schedulerOptions(c.Common, m)
	options.MaxWireBytes = pubsub.MaxWireBytes
	options.OneGroupPerRequest = true
	return newOutput(c.Common, cloud, store, m, log, options), nil
}

// schedulerOptions are the options that both outputs give their scheduler.
func schedulerOptions(c config.Common, m *metrics) batcher.Options {
	o := batcher.Options{
		MaxEntries:      c.Batch.MaxEntries,
		MaxBytes:        c.Batch.MaxBytes,
		Linger:          c.Batch.Linger,
		MaxRequests:     c.Batch.MaxRequests,
		MaxInFlight:     c.MaxInFlight,
		QueueMax:        c.Batch.QueueMax,
		QueueMaxBytes:   c.Batch.QueueMaxBytes,
		QueueTenantMax:  c.Batch.QueueTenantMax,
		StrictOrder:     c.Batch.StrictOrder,
		MaxRetries:      c.Retry.MaxRetries,
		InitialInterval: c.Retry.InitialInterval,
		MaxInterval:     c.Retry.MaxInterval,
		MaxElapsedTime:  c.Retry.MaxElapsedTime,
		CancelGrace:     min(c.Timeout, maxAwait),
		Observer:        m,
	}
	if !c.Batch.Enabled {
		o.MaxEntries = 1
	}
	return o
}
