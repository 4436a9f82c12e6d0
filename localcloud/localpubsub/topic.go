package localpubsub

import (
	"context"
	"net/http"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// topics.create, topics.get, topics.delete, topics.list, topics.subscriptions.list
//
// Supports: names and their rules, existence, the subscriptions of a topic.
// Simplifies: labels, kmsKeyName, messageRetentionDuration, messageStoragePolicy are taken and
// forgotten; lists have one page, whatever pageSize says.
// Omits: schemaSettings and ingestionDataSourceSettings (refused as UNIMPLEMENTED), patch, detach,
// snapshots. A subscription outlives its topic and then names "_deleted-topic_", as in the service.

// TopicOptions configure a topic.
type TopicOptions struct {
	// Reject plays the part of a schema: a request that holds a message for which it returns true is
	// refused as a whole with INVALID_ARGUMENT. It is called without a lock, from any goroutine.
	Reject func(*StoredMessage) bool
}

type topic struct {
	name    name
	o       TopicOptions
	msgs    []*StoredMessage
	log     []Request
	stats   counters
	subs    map[name]*subscription
	deleted bool
}

// CreateTopic makes a topic, named in full or barely (in Options.Project). It fails for a name that
// the service refuses and when there is such a topic.
func (p *PubSub) CreateTopic(topicName string, o TopicOptions) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.createTopicLocked(p.nameOf(topicName, kindTopic), o)
	return errorOf(err)
}

// DeleteTopic takes a topic and what was published to it away. It reports whether there was one.
func (p *PubSub) DeleteTopic(topicName string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.findTopicLocked(topicName)
	if t != nil {
		p.deleteTopicLocked(t)
	}
	return t != nil
}

func (p *PubSub) createTopicLocked(n name, o TopicOptions) (*topic, *apiError) {
	if err := checkName(n); err != nil {
		return nil, err
	}
	if p.topics[n] != nil {
		return nil, alreadyExists(n)
	}
	if o.Reject == nil {
		o.Reject = p.o.Reject
	}
	t := &topic{name: n, o: o, stats: newCounters(), subs: map[name]*subscription{}}
	p.topics[n] = t
	return t, nil
}

func (p *PubSub) deleteTopicLocked(t *topic) {
	t.deleted = true
	delete(p.topics, t.name)
	for _, s := range t.subs {
		s.topic = nil
	}
}

// publishTopicLocked is the topic that a publish request names, made on the spot where that is wanted.
func (p *PubSub) publishTopicLocked(n name) *topic {
	t := p.topics[n]
	if t == nil && p.o.AutoCreate {
		t, _ = p.createTopicLocked(n, TopicOptions{}) // nil: the name will be refused
	}
	return t
}

// topicLocked is an existing topic, or why there is none.
func (p *PubSub) topicLocked(n name) (*topic, *apiError) {
	if err := checkName(n); err != nil {
		return nil, err
	}
	if t := p.topics[n]; t != nil {
		return t, nil
	}
	return nil, notFound(n)
}

type topicDocument struct {
	Name string `json:"name"`
}

func (p *PubSub) createTopic(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	f, err := readFields(req.body, "name", "labels", "messageStoragePolicy", "kmsKeyName", "messageRetentionDuration",
		"satisfiesPzs", "tags", "messageTransforms", "?schemaSettings", "?ingestionDataSourceSettings")
	if err != nil {
		return nil, err
	}
	if err := f.nameIs(req.name); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.createTopicLocked(req.name, TopicOptions{}); err != nil {
		return nil, err
	}
	return jsonReply(http.StatusOK, topicDocument{req.name.String()}), nil
}

func (p *PubSub) getTopic(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.topicLocked(req.name)
	if err != nil {
		return nil, err
	}
	return jsonReply(http.StatusOK, topicDocument{t.name.String()}), nil
}

func (p *PubSub) deleteTopic(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.topicLocked(req.name)
	if err != nil {
		return nil, err
	}
	p.deleteTopicLocked(t)
	return empty(), nil
}

func (p *PubSub) listTopics(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list struct {
		Topics []topicDocument `json:"topics,omitempty"`
	}
	for _, n := range sortedNames(p.topics) {
		if n.project == req.name.project {
			list.Topics = append(list.Topics, topicDocument{n.String()})
		}
	}
	return jsonReply(http.StatusOK, list), nil
}

func (p *PubSub) listTopicSubscriptions(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.topicLocked(req.name)
	if err != nil {
		return nil, err
	}
	var list struct {
		Subscriptions []string `json:"subscriptions,omitempty"`
	}
	for _, n := range sortedNames(t.subs) {
		list.Subscriptions = append(list.Subscriptions, n.String())
	}
	return jsonReply(http.StatusOK, list), nil
}
