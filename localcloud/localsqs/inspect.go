package localsqs

import (
	"maps"
	"slices"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// StoredMessage is a message that a queue has stored.
type StoredMessage struct {
	ID              string
	Body            string // shared with the queue; "" when Options.DiscardBodies is set
	Size            int    // bytes, as the service counts: body and attributes
	Attributes      map[string]string
	AttributeTypes  map[string]string // data types, by the same names
	Group           string
	DeduplicationID string
	SequenceNumber  string // FIFO only
	Sent            time.Time
	Request         int  // ordinal, over SendMessage and SendMessageBatch to this queue, of the request that brought it
	Index           int  // its position in that request
	Received        int  // how often a consumer received it
	Deleted         bool // by a consumer
}

// Stats is how a queue's messages came. Only SendMessage and SendMessageBatch count.
type Stats struct {
	Requests   int            // that named the queue, refused ones included
	Entries    int            // in those
	Messages   int            // stored
	Bytes      int64          // of the stored ones, as the service counts
	Duplicates int            // accepted, but not stored: their deduplication id was known
	Groups     int            // distinct group ids among the stored ones
	Refused    map[string]int // refused by code (query spelling); a refused request counts once, so does each refused entry
	Sizes      map[int]int    // requests by number of entries

	MaxInFlight         int     // send requests in flight at once
	AverageInFlight     float64 // over the time with at least one
	MaxInFlightPerGroup int     // the same for the requests that hold an entry of one group
	BusiestGroup        string  // the group with that maximum
}

// EntriesPerRequest is the mean; zero without requests.
func (s Stats) EntriesPerRequest() float64 {
	if s.Requests == 0 {
		return 0
	}
	return float64(s.Entries) / float64(s.Requests)
}

// counters is the running form of Stats.
type counters struct {
	requests, entries, messages, duplicates int
	bytes                                   int64
	groups                                  map[string]struct{}
	refused                                 map[string]int
	sizes                                   map[int]int
	inFlight                                localcloud.Gauge
	maxPerGroup                             int
	busiest                                 string
}

func newCounters() counters {
	return counters{groups: map[string]struct{}{}, refused: map[string]int{}, sizes: map[int]int{}}
}

func (c *counters) stored(m *message) {
	c.messages++
	c.bytes += int64(m.size)
	if m.group != "" {
		c.groups[m.group] = struct{}{}
	}
}

// Messages returns what the queue (a name, an account/name or a queue URL) has stored since it was
// created or last purged, in order, deleted ones included. Nil when there is no such queue.
func (s *SQS) Messages(queueName string) []StoredMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(queueName)
	if q == nil {
		return nil
	}
	out := make([]StoredMessage, len(q.messages))
	for i, m := range q.messages {
		out[i] = StoredMessage{
			ID: m.id, Body: m.body, Size: m.size, Group: m.group, DeduplicationID: m.deduplication,
			SequenceNumber: m.sequence, Sent: m.sent, Request: m.requestOrdinal, Index: m.positionInBatch,
			Received: m.received, Deleted: m.deleted,
			Attributes: make(map[string]string, len(m.attributes)), AttributeTypes: make(map[string]string, len(m.attributes)),
		}
		for _, a := range m.attributes {
			out[i].Attributes[a.name] = a.value
			out[i].AttributeTypes[a.name] = a.dataType
		}
	}
	return out
}

// Stats returns the counts of a queue, named as for Messages; zero when there is no such queue.
func (s *SQS) Stats(queueName string) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(queueName)
	if q == nil {
		return Stats{}
	}
	c := &q.stats
	return Stats{
		Requests: c.requests, Entries: c.entries, Messages: c.messages, Bytes: c.bytes, Duplicates: c.duplicates,
		Groups: len(c.groups), Refused: maps.Clone(c.refused), Sizes: maps.Clone(c.sizes),
		MaxInFlight: c.inFlight.Max(), AverageInFlight: c.inFlight.Average(),
		MaxInFlightPerGroup: c.maxPerGroup, BusiestGroup: c.busiest,
	}
}

// Queues returns the names of all queues, sorted; "account/name" for those of another account than
// DefaultAccount.
func (s *SQS) Queues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.queues))
	for _, q := range s.queues {
		if q.account == DefaultAccount {
			names = append(names, q.name)
		} else {
			names = append(names, q.account+"/"+q.name)
		}
	}
	slices.Sort(names)
	return names
}

// Requests returns how many requests of an action have arrived, whatever became of them; "" is all,
// also those without a known action.
func (s *SQS) Requests(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ordinals[action]
}

// Refused returns the requests that were refused before they reached a queue, by code (query
// spelling): bad signatures, unreadable documents, queues that don't exist.
func (s *SQS) Refused() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.refused)
}

// Reset takes all messages, counts and remembered deduplication ids away. Queues stay, ordinals go on.
func (s *SQS) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = map[string]int{}
	for _, q := range s.queues {
		q.messages, q.head = nil, 0
		q.dedup, q.dedupAge = map[string]*message{}, nil
		inFlight := q.stats.inFlight
		q.stats = newCounters()
		inFlight.Restart()
		q.stats.inFlight = inFlight // its requests are still to leave
	}
}
