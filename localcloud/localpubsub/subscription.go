package localpubsub

import (
	"context"
	"net/http"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// subscriptions.create, subscriptions.get, subscriptions.delete, subscriptions.list
//
// Supports: topic, ackDeadlineSeconds (10 to 600, default 10), enableMessageOrdering.
// Simplifies: labels, retainAckedMessages, messageRetentionDuration, expirationPolicy and retryPolicy
// are taken and forgotten: messages stay until they are acknowledged, and a nack is redelivered at once.
// Omits: push, BigQuery and Cloud Storage delivery, filters, dead letters, exactly-once delivery,
// transforms (each refused as UNIMPLEMENTED), patch, seek, detach.

// Ack deadlines, from the reference of projects.subscriptions.
const (
	DefaultAckDeadline = 10 * time.Second
	MinAckDeadline     = 10 * time.Second
	MaxAckDeadline     = 600 * time.Second
)

// deletedTopic is what a subscription names once its topic is gone.
const deletedTopic = "_deleted-topic_"

// SubscriptionOptions configure a subscription.
type SubscriptionOptions struct {
	// AckDeadline is how long a message stays with who pulled it. Zero means DefaultAckDeadline.
	// Whole seconds; from MinAckDeadline to MaxAckDeadline.
	AckDeadline time.Duration
	// EnableMessageOrdering delivers the messages of one ordering key in the order of their storing.
	EnableMessageOrdering bool
}

type subscription struct {
	name    name
	topic   *topic // nil once deleted
	o       SubscriptionOptions
	backlog []*delivery // in order of storing; acknowledged ones are taken out now and then
	acked   int         // how many of backlog are acknowledged
	// outstanding holds the deliveries that a consumer has, by the number of their latest ack id.
	outstanding map[uint64]*delivery
	// changed is closed, and replaced, when something may have become deliverable.
	changed chan struct{}
}

// delivery is a message in a subscription.
type delivery struct {
	m        *StoredMessage
	acked    bool
	ack      uint64    // number of the latest ack id; 0 while nobody has it
	deadline time.Time // when ack ends
	attempts int
}

// CreateSubscription makes a subscription to topicName, both named in full or barely. It receives
// what is published from then on.
func (p *PubSub) CreateSubscription(subName, topicName string, o SubscriptionOptions) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.nameOf(topicName, kindTopic)
	if t := p.findTopicLocked(topicName); t != nil {
		n = t.name
	}
	_, err := p.createSubscriptionLocked(p.nameOf(subName, kindSubscription), n, o)
	return errorOf(err)
}

func (p *PubSub) createSubscriptionLocked(n, topicName name, o SubscriptionOptions) (*subscription, *apiError) {
	if err := checkName(n); err != nil {
		return nil, err
	}
	if o.AckDeadline == 0 {
		o.AckDeadline = DefaultAckDeadline
	}
	if o.AckDeadline < MinAckDeadline || o.AckDeadline > MaxAckDeadline || o.AckDeadline%time.Second != 0 {
		return nil, invalid("Invalid ack deadline given (ack_deadline_seconds=%g); it has to be from 10 to 600 seconds.", o.AckDeadline.Seconds())
	}
	if p.subs[n] != nil {
		return nil, alreadyExists(n)
	}
	t, err := p.topicLocked(topicName)
	if err != nil {
		return nil, err
	}
	s := &subscription{name: n, topic: t, o: o, outstanding: map[uint64]*delivery{}, changed: make(chan struct{})}
	p.subs[n], t.subs[n] = s, s
	return s, nil
}

// subLocked is an existing subscription, or why there is none.
func (p *PubSub) subLocked(n name) (*subscription, *apiError) {
	if err := checkName(n); err != nil {
		return nil, err
	}
	if s := p.subs[n]; s != nil {
		return s, nil
	}
	return nil, notFound(n)
}

type subscriptionDocument struct {
	Name                     string   `json:"name"`
	Topic                    string   `json:"topic"`
	PushConfig               struct{} `json:"pushConfig"`
	AckDeadlineSeconds       int      `json:"ackDeadlineSeconds"`
	MessageRetentionDuration string   `json:"messageRetentionDuration"`
	EnableMessageOrdering    bool     `json:"enableMessageOrdering,omitempty"`
	State                    string   `json:"state"`
}

func (s *subscription) document() subscriptionDocument {
	d := subscriptionDocument{
		Name: s.name.String(), Topic: deletedTopic, AckDeadlineSeconds: int(s.o.AckDeadline / time.Second),
		MessageRetentionDuration: "604800s", EnableMessageOrdering: s.o.EnableMessageOrdering, State: "ACTIVE",
	}
	if s.topic != nil {
		d.Topic = s.topic.name.String()
	}
	return d
}

func (p *PubSub) createSubscription(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	f, err := readFields(req.body, "name", "topic", "ackDeadlineSeconds", "enableMessageOrdering", "labels",
		"retainAckedMessages", "messageRetentionDuration", "expirationPolicy", "retryPolicy", "tags",
		"?pushConfig", "?bigqueryConfig", "?cloudStorageConfig", "?filter", "?deadLetterPolicy", "?detached",
		"?enableExactlyOnceDelivery", "?messageTransforms")
	if err != nil {
		return nil, err
	}
	var topicName string
	var seconds int
	var o SubscriptionOptions
	for _, err := range []*apiError{
		f.nameIs(req.name), f.get("topic", &topicName), f.get("ackDeadlineSeconds", &seconds),
		f.get("enableMessageOrdering", &o.EnableMessageOrdering),
	} {
		if err != nil {
			return nil, err
		}
	}
	o.AckDeadline = time.Duration(seconds) * time.Second
	n, ok := parseName(topicName, kindTopic)
	if !ok {
		return nil, invalid("Invalid resource name given (name=%s). Refer to https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names for more information.", topicName)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.createSubscriptionLocked(req.name, n, o)
	if err != nil {
		return nil, err
	}
	return jsonReply(http.StatusOK, s.document()), nil
}

func (p *PubSub) getSubscription(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.subLocked(req.name)
	if err != nil {
		return nil, err
	}
	return jsonReply(http.StatusOK, s.document()), nil
}

func (p *PubSub) deleteSubscription(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.subLocked(req.name)
	if err != nil {
		return nil, err
	}
	delete(p.subs, s.name)
	if s.topic != nil {
		delete(s.topic.subs, s.name)
	}
	s.wakeLocked() // a waiting pull finds it gone
	return empty(), nil
}

func (p *PubSub) listSubscriptions(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list struct {
		Subscriptions []subscriptionDocument `json:"subscriptions,omitempty"`
	}
	for _, n := range sortedNames(p.subs) {
		if n.project == req.name.project {
			list.Subscriptions = append(list.Subscriptions, p.subs[n].document())
		}
	}
	return jsonReply(http.StatusOK, list), nil
}
