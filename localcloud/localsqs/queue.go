package localsqs

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// DeduplicationWindow is how long a deduplication id is remembered: the fixed five minutes of the
// service, counted from the message that was stored.
const DeduplicationWindow = 5 * time.Minute

// queue is one queue. The SQS's mutex guards everything in it but the fields set at creation.
type queue struct {
	account, name string // fixed
	fifo          bool   // fixed
	created       time.Time

	attributes map[string]string // as CreateQueue and SetQueueAttributes gave them
	messages   []*message        // everything stored, in order, until purged
	head       int               // the messages before it are deleted
	stored     chan struct{}     // closed and replaced when a message is stored

	sequence uint64
	dedup    map[string]*message // by deduplication scope and id
	dedupAge []dedupEntry        // the same, oldest first

	stats  counters
	groups map[string]*localcloud.Gauge // requests in flight by group
}

type dedupEntry struct {
	key string
	at  time.Time
}

// message is one stored message.
type message struct {
	id              string
	body            string
	size            int
	bodyMD5         string
	attributes      []attribute
	system          []attribute
	group           string
	deduplication   string
	sequence        string // FIFO only
	sent            time.Time
	visible         time.Time // from then on it may be received
	received        int
	firstReceived   time.Time
	inFlight        bool // received and not deleted; over once visible has passed
	deleted         bool
	attributesMD5   string
	systemMD5       string
	requestOrdinal  int
	positionInBatch int
}

func newQueue(account, name string, attributes map[string]string, now time.Time) *queue {
	return &queue{
		account: account, name: name, fifo: strings.HasSuffix(name, ".fifo"), created: now,
		attributes: maps.Clone(attributes),
		stored:     make(chan struct{}),
		dedup:      map[string]*message{},
		groups:     map[string]*localcloud.Gauge{},
		stats:      newCounters(),
	}
}

func (q *queue) contentBased() bool { return q.attributes["ContentBasedDeduplication"] == "true" }

func (q *queue) attributeInt(name string, otherwise int) int {
	if n, err := strconv.Atoi(q.attributes[name]); err == nil {
		return n
	}
	return otherwise
}

func (q *queue) maxMessageBytes() int { return q.attributeInt("MaximumMessageSize", MaxMessageBytes) }

func (q *queue) arn(region string) string {
	return "arn:aws:sqs:" + region + ":" + q.account + ":" + q.name
}

// storeLocked appends m, or returns the message that it duplicates.
func (q *queue) storeLocked(m *message, now time.Time) *message {
	if q.fifo {
		for len(q.dedupAge) > 0 && now.Sub(q.dedupAge[0].at) >= DeduplicationWindow {
			delete(q.dedup, q.dedupAge[0].key)
			q.dedupAge = q.dedupAge[1:]
		}
		key := m.deduplication
		if q.attributes["DeduplicationScope"] == "messageGroup" {
			key = m.group + "\x00" + key
		}
		if original := q.dedup[key]; original != nil {
			q.stats.duplicates++
			return original
		}
		q.dedup[key] = m
		q.dedupAge = append(q.dedupAge, dedupEntry{key: key, at: now})
		// Twenty digits, growing within a group and not consecutive, as the service's.
		q.sequence += 256
		m.sequence = fmt.Sprintf("188%017d", q.sequence)
	}
	q.messages = append(q.messages, m)
	q.stats.stored(m)
	close(q.stored)
	q.stored = make(chan struct{})
	return m
}

// forgetDeletedLocked moves head past what is deleted, so that receiving from a long-lived queue
// does not walk over everything it ever held.
func (q *queue) forgetDeletedLocked() {
	for q.head < len(q.messages) && q.messages[q.head].deleted {
		q.head++
	}
}
