package pubsub

import (
	"context"
	"slices"
	"strings"
)

// publish checks msgs, sorts them by ordering key where they have several, cuts them into requests and
// sends those one after the other. errs has a place for each message.
func (p *publication) publish(ctx context.Context, msgs []Message, errs []error) {
	// The usual call is one request: one key, everything sound. It is not copied.
	bad := 0
	mixed := false
	for i := range msgs {
		if errs[i] = msgs[i].Validate(p.client.opts.MaxMessageBytes); errs[i] != nil {
			bad++
		}
		mixed = mixed || msgs[i].OrderingKey != msgs[0].OrderingKey
	}
	if bad == 0 && !mixed {
		p.publishKey(ctx, msgs, errs)
		return
	}

	// Anything else is arranged first, then told back to where it came from.
	origin := make([]int, 0, len(msgs)-bad)
	for i := range msgs {
		if errs[i] == nil {
			origin = append(origin, i)
		}
	}
	if mixed {
		// Stable: the messages of a key stay in the order given.
		slices.SortStableFunc(origin, func(a, b int) int {
			return strings.Compare(msgs[a].OrderingKey, msgs[b].OrderingKey)
		})
	}
	arranged := make([]Message, len(origin))
	for i, o := range origin {
		arranged[i] = msgs[o]
	}
	results := make([]error, len(origin))
	for start := 0; start < len(arranged); {
		end := start + 1
		for end < len(arranged) && arranged[end].OrderingKey == arranged[start].OrderingKey {
			end++
		}
		p.publishKey(ctx, arranged[start:end], results[start:end])
		start = end
	}
	for i, o := range origin {
		errs[o] = results[i]
	}
}

// publishKey sends messages that share one ordering key, or have none.
func (p *publication) publishKey(ctx context.Context, msgs []Message, errs []error) {
	p.held = nil
	for len(msgs) > 0 {
		n := p.client.fit(msgs)
		p.send(ctx, msgs[:n], errs[:n])
		msgs, errs = msgs[n:], errs[n:]
	}
}

// fit is how many of msgs, at least one, go into the next request. A message that is within its own
// limit but over MaxBytes travels alone.
func (c *Client) fit(msgs []Message) int {
	size, wire := 0, 0
	most := min(len(msgs), c.opts.MaxEntries)
	for i := range most {
		s, w := SizeFor(len(msgs[i].Data), msgs[i].Attributes, msgs[i].OrderingKey)
		size, wire = size+s, wire+w
		if i > 0 && (size > c.opts.MaxBytes || wire > MaxWireBytes) {
			return i
		}
	}
	return most
}
