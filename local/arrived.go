package local

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// arrival is what one queue or topic received.
type arrival struct {
	service   string // "SQS" or "Pub/Sub"
	name      string
	messages  []received
	requests  int
	entries   int // in those requests
	collapsed int // repeats that a FIFO queue's deduplication took without storing
	groups    int
	refused   map[string]int // by code
	inFlight  int            // requests at once, at most

	// What check finds.
	twice           int // messages stored again: same hook, same replay
	foreign         int // messages that are no Ankusa message
	claims          int
	claimsElsewhere int // not stored in this run: brought along by the hook, or encoded before
	claimsBroken    int // stored here, and lost or not the bytes that the message names
}

// received is one stored message.
type received struct {
	ID              string            `json:"message_id"`
	Body            string            `json:"body"`
	Attributes      map[string]string `json:"attributes"`
	Group           string            `json:"group,omitempty"`
	DeduplicationID string            `json:"deduplication_id,omitempty"`
}

// arrived collects what both clouds hold now.
func (c *clouds) arrived() []*arrival {
	var out []*arrival
	for _, name := range c.sqs.Queues() {
		s := c.sqs.Stats(name)
		a := &arrival{
			service: "SQS", name: name, requests: s.Requests, entries: s.Entries, collapsed: s.Duplicates,
			groups: s.Groups, refused: s.Refused, inFlight: s.MaxInFlight,
		}
		for _, m := range c.sqs.Messages(name) {
			a.messages = append(a.messages, received{ID: m.ID, Body: m.Body, Attributes: m.Attributes, Group: m.Group, DeduplicationID: m.DeduplicationID})
		}
		out = append(out, a)
	}
	for _, name := range c.pubsub.Topics() {
		s := c.pubsub.Stats(name)
		a := &arrival{
			service: "Pub/Sub", name: strings.TrimPrefix(name, "projects/"), requests: s.Requests, entries: s.Entries,
			groups: s.Keys, refused: s.Refused, inFlight: s.MaxInFlight,
		}
		for _, m := range c.pubsub.Published(name) {
			a.messages = append(a.messages, received{ID: m.MessageID, Body: string(m.Data), Attributes: m.Attributes, Group: m.OrderingKey})
		}
		out = append(out, a)
	}
	// Requests that never reached a queue or topic would otherwise vanish from the table.
	for service, refused := range map[string]map[string]int{"SQS": c.sqs.Refused(), "Pub/Sub": c.pubsub.Refused()} {
		if len(refused) > 0 {
			out = append(out, &arrival{service: service, name: "(none)", refused: maps.Clone(refused)})
		}
	}
	slices.SortStableFunc(out, func(a, b *arrival) int { return strings.Compare(b.service, a.service) })
	return out
}

// check looks at every message as a consumer would: is it an Ankusa message, has it come before, and
// does its claim redeem to exactly the bytes that it names.
func (a *arrival) check(ctx context.Context, store *claims) {
	seen := make(map[[2]string]bool, len(a.messages))
	for _, m := range a.messages {
		d, err := message.Decode([]byte(m.Body))
		if err != nil {
			a.foreign++
			continue
		}
		key := [2]string{d.ID, d.ReplayID}
		if seen[key] {
			a.twice++
		}
		seen[key] = true
		if d.Inline() {
			continue
		}
		a.claims++
		_, err = claim.Redeem(ctx, store, d.Claim, d.SHA256, d.Size)
		switch {
		case err == nil:
		case classify.Of(err).Code == claim.CodeNotFound && !store.stored(d.Claim.Key()):
			a.claimsElsewhere++
		default:
			a.claimsBroken++
		}
	}
}
