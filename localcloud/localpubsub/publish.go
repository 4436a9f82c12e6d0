package localpubsub

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// topics.publish
//
// Supports: the limits of the quota page, one ordering key per request, refusal as a whole, message
// ids in the order of the messages.
// Simplifies: a message id set by the publisher is ignored; the order of checks (document, limits,
// name, topic, schema) is ours.
// Omits: schemas (see TopicOptions.Reject), storage policies, compressed request bodies, throughput
// quotas (script them).

// StoredMessage is a message that a topic has stored. What Data and Attributes refer to is shared
// with the topic and all its subscriptions, and not to be changed.
type StoredMessage struct {
	MessageID   string
	Data        []byte
	Attributes  map[string]string // nil without any
	OrderingKey string            // "" for none
	PublishTime time.Time
	Request     int // ordinal, among the publish requests to this topic, of the one that brought it
	Index       int // its position in that request
}

// Size is what counts towards MaxRequestBytes: data, attribute names and values, ordering key.
func (m *StoredMessage) Size() int {
	n := len(m.Data) + len(m.OrderingKey)
	for name, value := range m.Attributes {
		n += len(name) + len(value)
	}
	return n
}

func (p *PubSub) publish(_ context.Context, req *request) (*localcloud.Reply, *apiError) {
	msgs := req.messages
	if err := checkPublish(msgs); err != nil {
		return nil, err
	}
	if err := checkName(req.name); err != nil {
		return nil, err
	}
	t := req.topic
	if t == nil {
		return nil, notFound(req.name)
	}
	if t.o.Reject != nil && slices.ContainsFunc(msgs, t.o.Reject) {
		return nil, invalid("Invalid data in message: Message failed schema validation.")
	}
	drop, extra, err := entryEffects(&req.effect, req.call)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if t.deleted {
		return nil, notFound(req.name)
	}
	now := p.o.Now()
	ids := make([]string, 0, len(msgs)+len(extra))
	for i, m := range msgs {
		how := drop[i]
		if how == localcloud.DropUnstored {
			continue
		}
		p.lastID++
		m.MessageID, m.PublishTime, m.Request = strconv.FormatUint(p.lastID, 10), now, req.entry.Ordinal
		p.storeLocked(t, m)
		if how == localcloud.Drop {
			continue
		}
		ids = append(ids, m.MessageID)
		switch extra[i] {
		case localcloud.Twice:
			ids = append(ids, m.MessageID)
		case localcloud.Unknown, localcloud.ExtraUnknown:
			p.lastID++
			ids = append(ids, strconv.FormatUint(p.lastID, 10))
		}
	}
	req.entry.Stored = true
	t.stats.accepted++
	return rawReply(http.StatusOK, publishReply(ids)), nil
}

func (p *PubSub) storeLocked(t *topic, m *StoredMessage) {
	t.stats.stored(m)
	if p.o.DiscardData {
		return
	}
	t.msgs = append(t.msgs, m)
	for _, s := range t.subs {
		s.addLocked(m)
	}
}

// entryEffects reads the faults of single entries: which ids to leave out, where to add one, and
// whether to refuse the request.
func entryEffects(e *localcloud.Effect, call *localcloud.Call) (drop, extra map[int]localcloud.EntryEffect, _ *apiError) {
	if len(e.Entries) == 0 {
		return nil, nil, nil
	}
	drop, extra = map[int]localcloud.EntryEffect{}, map[int]localcloud.EntryEffect{}
	for i := range call.Entries {
		for _, x := range e.On(&call.Entries[i]) {
			switch x.Do {
			case localcloud.Refuse:
				code, text := x.Code, x.Message
				if code == "" {
					code = "INVALID_ARGUMENT"
				}
				if text == "" {
					text = "scripted fault: a message was refused"
				}
				return nil, nil, &apiError{status: code, message: text}
			case localcloud.Drop, localcloud.DropUnstored:
				drop[i] = x.Do
			case localcloud.Twice, localcloud.Unknown, localcloud.ExtraUnknown:
				extra[i] = x.Do
			}
		}
	}
	return drop, extra, nil
}

// publishReply is PublishResponse. Ids are digits only.
func publishReply(ids []string) []byte {
	if len(ids) == 0 {
		return []byte("{}\n") // as the JSON mapping leaves out an empty list
	}
	out := make([]byte, 0, 32+len(ids)*(len(ids[0])+8))
	out = append(out, "{\n  \"messageIds\": ["...)
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, "\n    \""...)
		out = append(out, id...)
		out = append(out, '"')
	}
	return append(out, "\n  ]\n}\n"...)
}
