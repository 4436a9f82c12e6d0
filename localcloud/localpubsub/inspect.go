package localpubsub

import (
	"maps"
	"slices"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// Stats is how a topic's messages came. Only Publish counts.
type Stats struct {
	Requests int            // that named the topic, refused ones included
	Entries  int            // messages in those that could be read
	Accepted int            // requests that were stored, whatever was answered
	Messages int            // stored
	Bytes    int64          // of the stored ones, as the service counts: see StoredMessage.Size
	Keys     int            // distinct ordering keys among the stored ones
	Refused  map[string]int // requests by the status of the error that was answered, scripted ones too
	Sizes    map[int]int    // requests by number of messages; 0 is one that could not be read

	MaxBodyBytes int // the largest HTTP body, of any request

	MaxInFlight       int     // requests in flight at once, from header to reply
	AverageInFlight   float64 // over the time with at least one
	MaxInFlightPerKey int     // the same for the requests that hold one ordering key
	BusiestKey        string  // the key with that maximum
}

// EntriesPerRequest is the mean; zero without requests.
func (s Stats) EntriesPerRequest() float64 {
	if s.Requests == 0 {
		return 0
	}
	return float64(s.Entries) / float64(s.Requests)
}

// Request is one publish request, as the log keeps it.
type Request struct {
	Ordinal     int       // among the publish requests to its topic, from 1, in order of arrival
	Arrived     time.Time // when its header was read
	Entries     int       // messages in it; 0 when it could not be read
	OrderingKey string    // the first that its messages carry; "" for none
	BodyBytes   int       // of its HTTP body
	Stored      bool      // its messages were stored, whatever was answered
	Code        string    // status of the error that was answered; "" for none
	Replaced    bool      // the script put something else than an error in the place of the reply
}

// counters is the running form of Stats.
type counters struct {
	requests, entries, accepted, messages, maxBody int
	bytes                                          int64
	keys                                           map[string]struct{}
	refused                                        map[string]int
	sizes                                          map[int]int
	inFlight                                       localcloud.Gauge
	perKey                                         map[string]int // in flight now
	maxPerKey                                      int
	busiest                                        string
}

func newCounters() counters {
	return counters{
		keys: map[string]struct{}{}, refused: map[string]int{}, sizes: map[int]int{}, perKey: map[string]int{},
	}
}

// decoded counts a request whose body has been read; keys are in flight from now on.
func (c *counters) decoded(r *Request, keys []string) {
	c.entries += r.Entries
	c.sizes[r.Entries]++
	c.maxBody = max(c.maxBody, r.BodyBytes)
	for _, k := range keys {
		c.perKey[k]++
		if n := c.perKey[k]; n > c.maxPerKey {
			c.maxPerKey, c.busiest = n, k
		}
	}
}

func (c *counters) leaveKeys(keys []string) {
	for _, k := range keys {
		if c.perKey[k]--; c.perKey[k] == 0 {
			delete(c.perKey, k)
		}
	}
}

func (c *counters) stored(m *StoredMessage) {
	c.messages++
	c.bytes += int64(m.Size())
	if m.OrderingKey != "" {
		c.keys[m.OrderingKey] = struct{}{}
	}
}

// Published returns what the topic, named in full or barely, has stored since it was created or last
// reset, in the order of storing. Nil when there is no such topic. Data and attributes are shared
// with the topic and not to be changed.
func (p *PubSub) Published(topicName string) []StoredMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.findTopicLocked(topicName)
	if t == nil {
		return nil
	}
	out := make([]StoredMessage, len(t.msgs))
	for i, m := range t.msgs {
		out[i] = *m
	}
	return out
}

// Stats returns the counts of a topic; zero when there is no such topic.
func (p *PubSub) Stats(topicName string) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.findTopicLocked(topicName)
	if t == nil {
		return Stats{}
	}
	c := &t.stats
	return Stats{
		Requests: c.requests, Entries: c.entries, Accepted: c.accepted, Messages: c.messages, Bytes: c.bytes,
		Keys: len(c.keys), Refused: maps.Clone(c.refused), Sizes: maps.Clone(c.sizes), MaxBodyBytes: c.maxBody,
		MaxInFlight: c.inFlight.Max(), AverageInFlight: c.inFlight.Average(),
		MaxInFlightPerKey: c.maxPerKey, BusiestKey: c.busiest,
	}
}

// RequestLog returns the topic's publish requests that have been answered or given up, in that order.
func (p *PubSub) RequestLog(topicName string) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.findTopicLocked(topicName)
	if t == nil {
		return nil
	}
	return slices.Clone(t.log)
}

// Topics returns the full names of all topics, sorted.
func (p *PubSub) Topics() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.topics))
	for _, n := range sortedNames(p.topics) {
		names = append(names, n.String())
	}
	return names
}

// Requests returns how many requests of an action have arrived, whatever became of them; "" is all.
// Requests for a path that no action has are not counted.
func (p *PubSub) Requests(action string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ordinals[action]
}

// Refused returns the requests that were refused and count for no topic, by status: every action but
// Publish, and Publish to topics that don't exist.
func (p *PubSub) Refused() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.refused)
}

// Reset takes all messages and counts away, also what subscriptions hold. Topics and subscriptions
// stay, the ordinals that faults go by go on.
func (p *PubSub) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = map[string]int{}
	for _, t := range p.topics {
		t.msgs, t.log = nil, nil
		old := t.stats
		t.stats = newCounters()
		old.inFlight.Restart()
		// Its requests are still to leave.
		t.stats.inFlight, t.stats.perKey = old.inFlight, old.perKey
	}
	for _, s := range p.subs {
		s.backlog, s.outstanding = nil, map[uint64]*delivery{}
	}
}
