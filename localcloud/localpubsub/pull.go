package localpubsub

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// subscriptions.pull, subscriptions.acknowledge, subscriptions.modifyAckDeadline
//
// Supports: maxMessages, returnImmediately and waiting, ack deadlines, nacks (a deadline of 0),
// message ordering: one pull may take many messages of a key, and until all of them are acknowledged
// no other pull gets one of that key. When one of them comes back, so do those behind it.
// Simplifies: no message of a key that was acknowledged is delivered again because one before it came
// back; maxMessages is met exactly when there are enough; an ack id that has been replaced by a later
// delivery is ignored.
// Omits: streaming pull, exactly-once, deliveryAttempt (which needs a dead letter policy).

// MaxPull is the most that one pull returns, however much it asks for.
const MaxPull = 1000

// ReceivedMessage is a message that a pull returned.
type ReceivedMessage struct {
	AckID    string
	Attempts int // deliveries of this message so far, this one included
	Message  StoredMessage
}

// addLocked hands m to the subscription.
func (s *subscription) addLocked(m *StoredMessage) {
	s.backlog = append(s.backlog, &delivery{m: m})
	s.wakeLocked()
}

func (s *subscription) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// releaseLocked takes a delivery away from its consumer, and on an ordered subscription those of its
// key that are behind it.
func (s *subscription) releaseLocked(d *delivery) {
	key, ack := d.m.OrderingKey, d.ack
	delete(s.outstanding, ack)
	d.ack = 0
	if !s.o.EnableMessageOrdering || key == "" {
		return
	}
	for later, x := range s.outstanding {
		// Ack numbers of a key grow in the order of its messages.
		if later > ack && x.m.OrderingKey == key {
			delete(s.outstanding, later)
			x.ack = 0
		}
	}
}

// expireLocked releases what is past its deadline and returns the next deadline; zero for none.
func (s *subscription) expireLocked(now time.Time) (next time.Time) {
	for _, d := range s.outstanding {
		switch {
		case d.ack == 0: // released along with another
		case !d.deadline.After(now):
			s.releaseLocked(d)
		case next.IsZero() || d.deadline.Before(next):
			next = d.deadline
		}
	}
	return next
}

// takeLocked delivers up to n messages.
func (p *PubSub) takeLocked(s *subscription, n int, now time.Time) []ReceivedMessage {
	busy := map[string]bool{} // keys that a consumer has already
	if s.o.EnableMessageOrdering {
		for _, d := range s.outstanding {
			busy[d.m.OrderingKey] = d.m.OrderingKey != ""
		}
	}
	var out []ReceivedMessage
	for _, d := range s.backlog {
		if len(out) >= n {
			break
		}
		if d.acked || d.ack != 0 || busy[d.m.OrderingKey] {
			continue
		}
		p.lastAck++
		d.ack, d.deadline = p.lastAck, now.Add(s.o.AckDeadline)
		d.attempts++
		s.outstanding[d.ack] = d
		out = append(out, ReceivedMessage{AckID: ackPrefix + strconv.FormatUint(d.ack, 10), Attempts: d.attempts, Message: *d.m})
	}
	return out
}

const ackPrefix = "localpubsub-"

// ackNumber is the number in an ack id that this package may have given out.
func ackNumber(id string) (uint64, *apiError) {
	digits, ok := strings.CutPrefix(id, ackPrefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0, invalid("You have passed an invalid ack ID to the service (ack_id=%s).", id)
	}
	return n, nil
}

// Pull delivers up to maxMessages of what the subscription holds, without waiting. It counts as no
// request and meets no fault.
func (p *PubSub) Pull(subName string, maxMessages int) ([]ReceivedMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.findSubLocked(subName)
	if s == nil {
		return nil, errorOf(notFound(p.nameOf(subName, kindSubscription)))
	}
	now := p.o.Now()
	s.expireLocked(now)
	return p.takeLocked(s, min(maxMessages, MaxPull), now), nil
}

// Acknowledge takes messages out of the subscription. Ack ids past their deadline are ignored once
// the message has been delivered again; malformed ones are an error, and then none is taken.
func (p *PubSub) Acknowledge(subName string, ackIDs ...string) error {
	return p.modify(subName, ackIDs, func(s *subscription, d *delivery, _ time.Time) { s.ackLocked(d) })
}

// ModifyAckDeadline gives messages a new deadline from now; zero gives them back at once.
func (p *PubSub) ModifyAckDeadline(subName string, deadline time.Duration, ackIDs ...string) error {
	return p.modify(subName, ackIDs, func(s *subscription, d *delivery, now time.Time) { s.extendLocked(d, now, deadline) })
}

func (p *PubSub) modify(subName string, ackIDs []string, do func(*subscription, *delivery, time.Time)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.findSubLocked(subName)
	if s == nil {
		return errorOf(notFound(p.nameOf(subName, kindSubscription)))
	}
	return errorOf(s.eachLocked(ackIDs, func(d *delivery) { do(s, d, p.o.Now()) }))
}

// eachLocked calls do for each ack id that is still good.
func (s *subscription) eachLocked(ackIDs []string, do func(*delivery)) *apiError {
	numbers := make([]uint64, len(ackIDs))
	for i, id := range ackIDs {
		var err *apiError
		if numbers[i], err = ackNumber(id); err != nil {
			return err
		}
	}
	for _, n := range numbers {
		if d := s.outstanding[n]; d != nil {
			do(d)
		}
	}
	s.wakeLocked()
	return nil
}

func (s *subscription) ackLocked(d *delivery) {
	delete(s.outstanding, d.ack)
	d.acked, d.ack = true, 0
	// Half of the backlog at a time, so that an acknowledgement costs little on average.
	if s.acked++; s.acked > 64 && s.acked > len(s.backlog)/2 {
		s.backlog = slices.DeleteFunc(s.backlog, func(d *delivery) bool { return d.acked })
		s.acked = 0
	}
}

func (s *subscription) extendLocked(d *delivery, now time.Time, by time.Duration) {
	if by <= 0 {
		s.releaseLocked(d)
		return
	}
	d.deadline = now.Add(by)
}

func (p *PubSub) pull(ctx context.Context, req *request) (*localcloud.Reply, *apiError) {
	f, err := readFields(req.body, "maxMessages", "returnImmediately")
	if err != nil {
		return nil, err
	}
	var n int
	var atOnce bool
	for _, err := range []*apiError{f.get("maxMessages", &n), f.get("returnImmediately", &atOnce)} {
		if err != nil {
			return nil, err
		}
	}
	if n <= 0 {
		return nil, invalid("The value for max_messages is too small. You passed %d in the request, but the minimum value is 1.", n)
	}
	end := time.NewTimer(p.o.PullWait)
	defer end.Stop()
	for {
		msgs, wait, err := p.tryPull(req.name, min(n, MaxPull))
		if err != nil || len(msgs) > 0 || atOnce {
			return pullReply(msgs), err
		}
		atOnce = wait.until(ctx, end.C)
		if ctx.Err() != nil {
			return nil, nil // the client went; ServeHTTP cuts
		}
	}
}

// waiting is what a pull without messages waits for.
type waiting struct {
	changed <-chan struct{}
	expiry  time.Duration // to the next ack deadline; 0 for none
}

// until waits and reports whether end came first.
func (w waiting) until(ctx context.Context, end <-chan time.Time) bool {
	var expiry <-chan time.Time
	if w.expiry > 0 {
		t := time.NewTimer(w.expiry)
		defer t.Stop()
		expiry = t.C
	}
	select {
	case <-w.changed:
	case <-expiry:
	case <-ctx.Done():
	case <-end:
		return true
	}
	return false
}

func (p *PubSub) tryPull(n name, maxMessages int) ([]ReceivedMessage, waiting, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.subLocked(n)
	if err != nil {
		return nil, waiting{}, err
	}
	now := p.o.Now()
	w := waiting{changed: s.changed}
	if next := s.expireLocked(now); !next.IsZero() {
		w.expiry = next.Sub(now)
	}
	return p.takeLocked(s, maxMessages, now), w, nil
}

func pullReply(msgs []ReceivedMessage) *localcloud.Reply {
	type message struct {
		Data        []byte            `json:"data,omitempty"`
		Attributes  map[string]string `json:"attributes,omitempty"`
		MessageID   string            `json:"messageId"`
		PublishTime string            `json:"publishTime"`
		OrderingKey string            `json:"orderingKey,omitempty"`
	}
	type received struct {
		AckID   string  `json:"ackId"`
		Message message `json:"message"`
	}
	var list struct {
		ReceivedMessages []received `json:"receivedMessages,omitempty"`
	}
	for _, r := range msgs {
		m := r.Message
		list.ReceivedMessages = append(list.ReceivedMessages, received{r.AckID, message{
			m.Data, m.Attributes, m.MessageID, m.PublishTime.UTC().Format("2006-01-02T15:04:05.000Z"), m.OrderingKey,
		}})
	}
	return jsonReply(http.StatusOK, list)
}

func (p *PubSub) acknowledge(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	return p.modifyByRequest(req, []string{"ackIds"}, func(s *subscription, _ fields) (func(*delivery), *apiError) {
		return s.ackLocked, nil
	})
}

func (p *PubSub) modifyAckDeadline(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	return p.modifyByRequest(req, []string{"ackIds", "ackDeadlineSeconds"}, func(s *subscription, f fields) (func(*delivery), *apiError) {
		var seconds int
		if err := f.get("ackDeadlineSeconds", &seconds); err != nil {
			return nil, err
		}
		if seconds < 0 || seconds > int(MaxAckDeadline/time.Second) {
			return nil, invalid("Invalid ack deadline given (ack_deadline_seconds=%d); it has to be from 0 to 600 seconds.", seconds)
		}
		now := p.o.Now()
		return func(d *delivery) { s.extendLocked(d, now, time.Duration(seconds)*time.Second) }, nil
	})
}

func (p *PubSub) modifyByRequest(req *request, known []string, how func(*subscription, fields) (func(*delivery), *apiError)) (*localcloud.Reply, *apiError) {
	f, err := readFields(req.body, known...)
	if err != nil {
		return nil, err
	}
	var ids []string
	if err := f.get("ackIds", &ids); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, invalid("No ack ids specified.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.subLocked(req.name)
	if err != nil {
		return nil, err
	}
	do, err := how(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.eachLocked(ids, do); err != nil {
		return nil, err
	}
	return empty(), nil
}
