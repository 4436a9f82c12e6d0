package localsqs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// SendMessageBatch.
//
// Supported: all members; the request-level rules in the order EmptyBatchRequest,
// TooManyEntriesInBatchRequest, InvalidBatchEntryId, BatchEntryIdsNotDistinct, BatchRequestTooLong,
// a missing group or deduplication id on a FIFO queue; the other rules for one message per entry; entry faults of the script.
//
// Simplified: one entry above the queue's MaximumMessageSize fails alone, and the limit of a batch
// is not the queue's (the service has been seen to let a batch's total pass it); queue delay on FIFO queues
// is counted from each message.
//
// Omitted: dead-letter queues, encryption.

type sentEntry struct {
	ID                           string `json:"Id"`
	MessageID                    string `json:"MessageId"`
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string `json:",omitempty"`
}

type failedEntry struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string `json:",omitempty"`
}

type batchResult struct {
	Successful []sentEntry   `json:",omitempty"`
	Failed     []failedEntry `json:",omitempty"`
}

func (s *SQS) sendMessageBatch(x *exchange) (any, *apiError) {
	entries := x.request.entries
	s.mu.Lock()
	q, err := s.queueLocked(x.request)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	rules := q.rulesLocked()
	s.mu.Unlock()
	if err := checkBatch(entries, rules, s.o.MaxBatchBytes); err != nil {
		return nil, err
	}
	return report(entries, s.store(q, x, entries)), nil
}

// checkBatch applies the rules for the request as a whole.
func checkBatch(entries []entry, q rules, maxBytes int) *apiError {
	if len(entries) == 0 {
		return fail("EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request.")
	}
	if err := checkEntryIDs(entries, "SendMessageBatchRequestEntry"); err != nil {
		return err
	}
	total := 0
	for i := range entries {
		total += entries[i].size()
	}
	if total > maxBytes {
		return fail("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxBytes, total)
	}
	for i := range entries {
		if err := entries[i].missing(q); err != nil {
			return err
		}
	}
	return nil
}

// checkEntryIDs applies the rules that all batch actions share.
func checkEntryIDs(entries []entry, shape string) *apiError {
	if n := len(entries); n > MaxBatchEntries {
		return fail("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", MaxBatchEntries, n)
	}
	seen := make(map[string]bool, len(entries))
	for i := range entries {
		e := &entries[i]
		if !e.hasID {
			return missingParameter(fmt.Sprintf("%s.%d.Id", shape, i+1))
		}
		if !entryID.MatchString(e.id) {
			return fail("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[e.id] {
			return fail("BatchEntryIdsNotDistinct", "Id %s repeated.", e.id)
		}
		seen[e.id] = true
	}
	return nil
}

// outcome is what became of one entry.
type outcome struct {
	stored *message // also the original of a duplicate
	err    *apiError
	sender bool
	body   string // MD5 of the body that was sent: a duplicate's may differ from its original's
	attrs  string
	system string
	faults []localcloud.EntryFault
}

// store checks each entry and stores those that pass, in order and together: no other request's
// messages come between them.
func (s *SQS) store(q *queue, x *exchange, entries []entry) []outcome {
	out := make([]outcome, len(entries))
	fresh := make([]*message, len(entries))
	s.mu.Lock()
	rules := q.rulesLocked()
	s.mu.Unlock()
	for i := range entries {
		e, o := &entries[i], &out[i]
		if len(x.effect.Entries) > 0 {
			o.faults = x.effect.On(new(seen(i, e)))
		}
		skip := false
		for _, f := range o.faults {
			switch f.Do {
			case localcloud.Refuse, localcloud.FailTwice:
				o.err, o.sender = scriptedEntry(f), f.SenderFault
			case localcloud.DropUnstored:
				skip = true
			}
		}
		if o.err == nil && !skip {
			o.err, o.sender = e.check(rules), true
		}
		if o.err != nil || skip {
			continue
		}
		m := &message{id: newID(), group: e.group, deduplication: e.deduplication, size: e.size(), attributes: e.attributes, system: e.system}
		m.bodyMD5, m.attributesMD5, m.systemMD5 = md5Hex(e.body), attributesMD5(e.attributes), attributesMD5(e.system)
		o.body, o.attrs, o.system = m.bodyMD5, m.attributesMD5, m.systemMD5
		if m.body = e.body; s.o.DiscardBodies {
			m.body, m.bodyMD5 = "", wrongMD5 // which is right for an empty body
		}
		if q.fifo && !e.hasDeduplicaton {
			sum := sha256.Sum256(bodyBytes(e.body)) // ContentBasedDeduplication: the body, not the attributes
			m.deduplication = hex.EncodeToString(sum[:])
		}
		fresh[i] = m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range fresh {
		if o := &out[i]; m == nil {
			if o.err != nil {
				q.stats.refused[o.err.query()]++
			}
			continue
		}
		delay := q.attributeInt("DelaySeconds", 0)
		if d := entries[i].delay; d != nil && !q.fifo {
			delay = *d
		}
		m.sent = x.now
		m.visible = x.now.Add(time.Duration(delay) * time.Second)
		m.requestOrdinal, m.positionInBatch = x.sent, i
		out[i].stored = q.storeLocked(m, x.now)
	}
	return out
}

func scriptedEntry(f localcloud.EntryFault) *apiError {
	e := &apiError{code: f.Code, message: f.Message}
	if e.code == "" {
		e.code = "InternalFailure"
	}
	if e.message == "" {
		e.message = "scripted fault"
	}
	return e
}
