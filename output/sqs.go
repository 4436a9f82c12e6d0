package output

import (
	"context"
	"strconv"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/message"
	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// sqsCloud is Amazon SQS as output sees it.
type sqsCloud struct {
	client      *sqs.Client
	wire        *wire.Client
	credentials *sqs.CachedCredentials
	configured  sqs.Endpoint // of the configuration or the environment; empty: the queue URL decides

	queueURL   field
	group      field
	groupSet   bool
	delay      field
	extra      []extraAttribute
	maxMessage int
	requests   requests[sqs.Attribute, sqs.Entry]
}

// address implements cloud.
func (c *sqsCloud) address(v *view, i int, it *item) error {
	var err error
	if it.queue, err = v.resolve(&c.queueURL, i); err != nil {
		return err
	}
	if !c.queueURL.static {
		if it.queue == "" {
			return classify.Permanentf("sqs", "invalid_field", "queue_url: resolved to nothing for this message")
		}
		if err := sqs.CheckQueueURL(it.queue, c.configured.String(), true); err != nil {
			return err
		}
	}
	if it.group, err = v.resolve(&c.group, i); err != nil {
		return err
	}
	fifo := sqs.IsFIFO(it.queue)
	if it.ordered = fifo; fifo {
		if !c.groupSet {
			it.group = it.defaultGroup()
		} else if it.group == "" {
			return classify.Permanentf("sqs", "invalid_field", "message_group_id: resolved to nothing for this message, and a FIFO queue requires a group")
		}
		it.dedupID = it.deduplicationID()
	} else if it.delay, err = c.delaySeconds(v, i); err != nil {
		return err
	}
	it.attributes, err = appendExtra(it.appendOwnAttributes(nil), c.extra, v, i)
	return err
}

func (c *sqsCloud) delaySeconds(v *view, i int) (*int32, error) {
	s, err := v.resolve(&c.delay, i)
	if err != nil || s == "" {
		return nil, err
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 || n > sqs.MaxDelaySeconds {
		return nil, classify.Permanentf("sqs", "invalid_field", "delay_seconds: must be a whole number from 0 to %d", sqs.MaxDelaySeconds)
	}
	return new(int32(n)), nil
}

// measure implements cloud.
func (c *sqsCloud) measure(it *item) error {
	attributes := make([]sqs.Attribute, 0, message.MaxAttributes)
	for _, a := range it.attributes {
		attributes = append(attributes, sqs.Attribute(a))
	}
	// Of our own encoding the body is known to be sound, and not there yet. Somebody else's may hold a
	// character that SQS does not take.
	e := sqsEntry(it, it.raw, attributes)
	length := it.messageSize()
	it.size = length + e.EnvelopeSize()
	if it.decoded != nil {
		return e.Validate(c.maxMessage)
	}
	return e.ValidateEnvelope(length, c.maxMessage)
}

// send implements cloud. The messages are encoded here, after the scheduler has admitted them, so that
// its ceilings bound what is held twice.
func (c *sqsCloud) send(ctx context.Context, queue string, items []*item) []error {
	r := c.requests.encode(items)
	defer c.requests.free(r)
	return c.client.Send(ctx, queue, r.entries)
}

func sqsAttribute(a message.Attribute) sqs.Attribute { return sqs.Attribute(a) }

// sqsEntry is an item as the client takes it; body may be nil where only the rest counts.
func sqsEntry(it *item, body []byte, attributes []sqs.Attribute) sqs.Entry {
	return sqs.Entry{
		Body: body, Attributes: attributes, GroupID: it.group, DeduplicationID: it.dedupID, DelaySeconds: it.delay,
	}
}

// close implements cloud.
func (c *sqsCloud) close(context.Context) error {
	c.wire.Close()
	c.credentials.Close()
	return nil
}

// sqsSpec is made once: its lint rules are parsed for it, which takes longer than the rest of a registration.
var sqsSpec = sync.OnceValue(config.SQSSpec)

// RegisterSQS adds the output ankusa_sqs to an environment.
func RegisterSQS(env *service.Environment, opts ...Option) error {
	o := newOptions(opts)
	return env.RegisterBatchOutput("ankusa_sqs", sqsSpec(),
		func(conf *service.ParsedConfig, res *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			c, err := config.ParseSQS(conf)
			if err != nil {
				return nil, service.BatchPolicy{}, 0, err
			}
			out, err := newSQS(c, res, o)
			if err != nil {
				return nil, service.BatchPolicy{}, 0, err
			}
			return out, c.Batching, c.MaxInFlight, nil
		})
}

// newSQS puts the output together. It validates and starts nothing.
func newSQS(c *config.SQS, res *service.Resources, o options) (*output, error) {
	if o.sqs != nil {
		o.sqs(c)
	}
	log, m := res.Logger(), newMetrics(res.Metrics(), "sqs")
	cloud := &sqsCloud{
		configured: sqs.ConfiguredEndpoint(c.Endpoint, o.getenv),
		queueURL:   newField("queue_url", c.QueueURL),
		group:      newField("message_group_id", c.MessageGroupID),
		groupSet:   c.MessageGroupID != nil,
		delay:      newField("delay_seconds", c.DelaySeconds),
		extra:      newExtraAttributes(c.Attributes),
		maxMessage: c.MaxMessageBytes,
		requests:   requests[sqs.Attribute, sqs.Entry]{attribute: sqsAttribute, entry: sqsEntry},
	}
	region := c.Region
	if cloud.queueURL.static {
		url := cloud.queueURL.value
		if err := sqs.CheckQueueURL(url, cloud.configured.String(), false); err != nil {
			return nil, err
		}
		if _, err := sqs.ResolveEndpoint(c.Endpoint, url, o.getenv); err != nil {
			return nil, err
		}
		var err error
		if region, err = sqs.ResolveRegion(c.Region, url, o.getenv); err != nil {
			return nil, err
		}
	}
	var err error
	cloud.credentials, err = sqs.LoadCredentials(sqs.CredentialOptions{
		ID: c.Credentials.ID, Secret: c.Credentials.Secret, Token: c.Credentials.Token,
		Profile: c.Credentials.Profile, FromEC2Role: c.Credentials.FromEC2Role,
		Role: c.Credentials.Role, RoleExternalID: c.Credentials.RoleExternalID,
		Region: region,
	})
	if err != nil {
		return nil, err
	}
	cloud.wire = wire.New(wire.Options{
		Service: "sqs", Timeout: c.Timeout, TLS: c.TLS, MaxIdleConnsPerHost: c.Batch.MaxRequests, Dial: o.dial,
	})
	cloud.client, err = sqs.New(sqs.Options{
		Region:        c.Region,
		Endpoint:      c.Endpoint,
		DynamicQueues: !cloud.queueURL.static,
		Credentials:   cloud.credentials,
		Wire:          cloud.wire,
		Single:        !c.Batch.Enabled,
		Getenv:        o.getenv,
		Observe: func(o sqs.Observation) {
			m.request(o.Entries, o.Latency, o.Outcome())
			if o.Split {
				m.bisections.Incr(1)
			}
		},
		Logf: log.Warnf,
	})
	if err != nil {
		return nil, err
	}
	if err := checkStatic(newHookReader(c.Hook)); err != nil {
		return nil, err
	}
	if err := checkStaticSQS(cloud); err != nil {
		return nil, err
	}
	store, err := openStore(c.Common, res, o, StoreOptions{AWS: cloud.credentials, Region: region})
	if err != nil {
		return nil, err
	}
	out := newOutput(c.Common, cloud, store, m, log, schedulerOptions(c.Common, &cloud.queueURL, m))
	out.results = o.results
	return out, nil
}
