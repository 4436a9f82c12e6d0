package localsqs

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReceiveMessage.
//
// Supported: MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds, system and message attribute
// names (All, .*, prefix.*), delays. On a FIFO queue a group with a message in flight gives nothing
// more until that one is deleted or visible again, and one reply may hold several of a group, in
// order.
//
// Simplified: messages come in the order they were stored, on standard queues too; a long poll
// waits in real time; receiving needs the same rights as sending.
//
// Omitted: ReceiveRequestAttemptId, redrive, ChangeMessageVisibility.

type receivedMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             map[string]string            `json:",omitempty"`
	MD5OfMessageAttributes string                       `json:",omitempty"`
	MessageAttributes      map[string]receivedAttribute `json:",omitempty"`
}

type receivedAttribute struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue *string `json:",omitempty"`
}

type receiveResult struct {
	Messages []receivedMessage `json:",omitempty"`
}

func (s *SQS) receiveMessage(x *exchange) (any, *apiError) {
	req := x.request
	limit, err := ranged(req.max, 1, 1, maxReceiveMessages, "MaxNumberOfMessages")
	if err != nil {
		return nil, err
	}
	if _, err := ranged(req.visibility, 0, 0, maxVisibility, "VisibilityTimeout"); err != nil {
		return nil, err
	}
	if _, err := ranged(req.wait, 0, 0, maxWaitSeconds, "WaitTimeSeconds"); err != nil {
		return nil, err
	}
	start := time.Now()
	for {
		s.mu.Lock()
		q, err := s.queueLocked(req)
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		seconds := q.attributeInt("ReceiveMessageWaitTimeSeconds", 0)
		if req.wait != nil {
			seconds = *req.wait
		}
		now := s.o.Now()
		result := q.receiveLocked(req, limit, now)
		left := time.Duration(seconds)*time.Second - time.Since(start)
		if len(result.Messages) > 0 || left <= 0 {
			s.mu.Unlock()
			return result, nil
		}
		stored, next := q.stored, q.nextVisibleLocked(now)
		s.mu.Unlock()
		if next > 0 {
			left = min(left, next)
		}
		t := time.NewTimer(left)
		select {
		case <-stored:
		case <-t.C:
		case <-x.http.Context().Done():
			t.Stop()
			return &receiveResult{}, nil
		}
		t.Stop()
	}
}

// ranged is an optional number within bounds.
func ranged(n *int, otherwise, low, high int, name string) (int, *apiError) {
	if n == nil {
		return otherwise, nil
	}
	if *n < low || *n > high {
		return 0, invalidParameter("Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.", *n, name, low, high)
	}
	return *n, nil
}

// nextVisibleLocked is how long it takes until a message becomes visible; 0 when none will.
func (q *queue) nextVisibleLocked(now time.Time) time.Duration {
	var next time.Duration
	for _, m := range q.messages[q.head:] {
		if d := m.visible.Sub(now); !m.deleted && d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	return next
}

func (q *queue) receiveLocked(req *request, limit int, now time.Time) *receiveResult {
	seconds := q.attributeInt("VisibilityTimeout", 30)
	if req.visibility != nil {
		seconds = *req.visibility
	}
	q.forgetDeletedLocked()
	locked := map[string]bool{}
	if q.fifo {
		// First who is locked, then who is next: an earlier message of a group may be visible again
		// while a later one is still in flight.
		for _, m := range q.messages[q.head:] {
			if !m.deleted && m.visible.After(now) {
				locked[m.group] = true
			}
		}
	}
	result := &receiveResult{}
	for _, m := range q.messages[q.head:] {
		if len(result.Messages) == limit {
			break
		}
		if m.deleted || m.visible.After(now) || q.fifo && locked[m.group] {
			continue
		}
		m.visible = now.Add(time.Duration(seconds) * time.Second)
		m.received++
		m.inFlight = true
		if m.received == 1 {
			m.firstReceived = now
		}
		result.Messages = append(result.Messages, m.receipt(req))
	}
	return result
}

// receipt is m as a consumer gets it.
func (m *message) receipt(req *request) receivedMessage {
	r := receivedMessage{
		MessageID: m.id, MD5OfBody: m.bodyMD5, Body: m.body,
		ReceiptHandle: base64.StdEncoding.EncodeToString([]byte(m.id + " " + strconv.Itoa(m.received))),
		Attributes:    map[string]string{},
	}
	for name, value := range m.systemAttributes() {
		if slices.Contains(req.attributeNames, "All") || slices.Contains(req.attributeNames, name) {
			r.Attributes[name] = value
		}
	}
	var wanted []attribute
	for _, a := range m.attributes {
		if !slices.ContainsFunc(req.messageNames, func(n string) bool { return selects(n, a.name) }) {
			continue
		}
		wanted = append(wanted, a)
		if r.MessageAttributes == nil {
			r.MessageAttributes = map[string]receivedAttribute{}
		}
		v := receivedAttribute{DataType: a.dataType}
		if a.base() == "Binary" {
			v.BinaryValue = new(base64.StdEncoding.EncodeToString([]byte(a.value)))
		} else {
			v.StringValue = new(a.value)
		}
		r.MessageAttributes[a.name] = v
	}
	r.MD5OfMessageAttributes = attributesMD5(wanted)
	return r
}

// selects reports whether a MessageAttributeNames element asks for an attribute.
func selects(pattern, name string) bool {
	if pattern == "All" || pattern == ".*" {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, ".*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

func (m *message) systemAttributes() map[string]string {
	millis := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	all := map[string]string{
		"SenderId":                         "AIDALOCALCLOUD",
		"SentTimestamp":                    millis(m.sent),
		"ApproximateReceiveCount":          strconv.Itoa(m.received),
		"ApproximateFirstReceiveTimestamp": millis(m.firstReceived),
	}
	if m.group != "" {
		all["MessageGroupId"] = m.group
	}
	if m.sequence != "" {
		all["SequenceNumber"], all["MessageDeduplicationId"] = m.sequence, m.deduplication
	}
	for _, a := range m.system {
		all[a.name] = a.value
	}
	return all
}

// Receive takes up to limit messages of a queue as ReceiveMessage would with every attribute, without
// a request. It is for tests that are consumers; handles go to Delete.
func (s *SQS) Receive(queueName string, limit int, visibility time.Duration) []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(queueName)
	if q == nil {
		return nil
	}
	seconds := int(visibility / time.Second)
	req := &request{visibility: &seconds, attributeNames: []string{"All"}, messageNames: []string{"All"}}
	var out []Received
	for _, m := range q.receiveLocked(req, limit, s.o.Now()).Messages {
		out = append(out, Received{ID: m.MessageID, Body: m.Body, ReceiptHandle: m.ReceiptHandle, Group: m.Attributes["MessageGroupId"]})
	}
	return out
}

// Received is a message in flight.
type Received struct{ ID, Body, ReceiptHandle, Group string }
