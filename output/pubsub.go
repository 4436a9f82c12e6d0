package output

import (
	"context"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

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
	requests    requests[pubsub.Attribute, pubsub.Message]
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
	it.attributes, err = appendExtra(it.appendOwnAttributes(nil), c.extra, v, i)
	return err
}

// measure implements cloud.
func (c *pubsubCloud) measure(it *item) error {
	attributes := make([]pubsub.Attribute, 0, message.MaxAttributes)
	for _, a := range it.attributes {
		attributes = append(attributes, pubsub.Attribute(a))
	}
	if err := pubsub.ValidateAttributes(attributes, it.group); err != nil {
		return err
	}
	it.size, it.wire = pubsub.SizeFor(it.messageSize(), attributes, it.group)
	return pubsub.ValidateSize(it.size, it.wire, c.maxMessage)
}

// send implements cloud, as sqsCloud's does.
func (c *pubsubCloud) send(ctx context.Context, topic string, items []*item) []error {
	r := c.requests.encode(items)
	defer c.requests.free(r)
	return c.client.Publish(ctx, topic, r.entries)
}

func pubsubAttribute(a message.Attribute) pubsub.Attribute { return pubsub.Attribute(a) }

func pubsubMessage(it *item, data []byte, attributes []pubsub.Attribute) pubsub.Message {
	return pubsub.Message{Data: data, Attributes: attributes, OrderingKey: it.group}
}

// close implements cloud.
func (c *pubsubCloud) close(context.Context) error {
	c.wire.Close()
	if c.credentials != nil {
		c.credentials.Close()
	}
	return nil
}

// pubsubSpec is made once: its lint rules are parsed for it, which takes longer than the rest of a registration.
var pubsubSpec = sync.OnceValue(config.PubSubSpec)

// RegisterPubSub adds the output ankusa_pubsub to an environment.
func RegisterPubSub(env *service.Environment, opts ...Option) error {
	o := newOptions(opts)
	return env.RegisterBatchOutput("ankusa_pubsub", pubsubSpec(),
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
		requests:    requests[pubsub.Attribute, pubsub.Message]{attribute: pubsubAttribute, entry: pubsubMessage},
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
			JSON: c.CredentialsJSON, Scopes: GoogleScopes(c.Common), TLS: c.TLS, Getenv: o.getenv,
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
	if err := checkStatic(newHookReader(c.Hook)); err != nil {
		return nil, err
	}
	if err := checkStaticPubSub(cloud); err != nil {
		return nil, err
	}
	store, err := openStore(c.Common, res, o, StoreOptions{Google: cloud.credentials, GoogleJSON: c.CredentialsJSON})
	if err != nil {
		return nil, err
	}
	options := schedulerOptions(c.Common, &cloud.topic, m)
	options.MaxWireBytes = pubsub.MaxWireBytes
	options.OneGroupPerRequest = true
	out := newOutput(c.Common, cloud, store, m, log, options)
	out.results = o.results
	return out, nil
}
