package output

import (
	"fmt"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/message"
	"github.com/ankusa-connect/ankusa-connect/pubsub"
	"github.com/ankusa-connect/ankusa-connect/sqs"
)

// checkStatic refuses at start what would refuse every message: a static value of the hook section that
// no hook may have. Lint finds most of it before; here it has come from the environment.
func checkStatic(r *hookReader) error {
	if r.encoded {
		return nil
	}
	h := message.Hook{ID: "x", SourceID: "x"}
	var receivedAt, ref string
	for _, x := range [...]struct {
		f   *field
		dst *string
	}{
		{&r.id, &h.ID}, {&r.sourceID, &h.SourceID}, {&r.tenantID, &h.TenantID}, {&r.contentType, &h.ContentType},
		{&r.dedupeKey, &h.DedupeKey}, {&r.replayID, &h.ReplayID}, {&r.receivedAt, &receivedAt}, {&r.claim, &ref},
	} {
		if x.f.static && x.f.value != "" {
			*x.dst = x.f.value
		}
	}
	var err error
	if h.ReceivedAt, err = parseMillis(receivedAt); err != nil {
		return fmt.Errorf("field hook: %w", err)
	}
	if ref != "" {
		if _, err := claim.ParseRef(ref); err != nil {
			return fmt.Errorf("field hook.claim: %w", err)
		}
	}
	if err := h.Validate(); err != nil {
		return fmt.Errorf("field hook: %w", err)
	}
	return nil
}

// checkStaticSQS is checkStatic for what SQS is told of every message.
func checkStaticSQS(c *sqsCloud) error {
	var e sqs.Entry
	for _, a := range c.extra {
		if a.value.static && a.value.value != "" {
			e.Attributes = append(e.Attributes, sqs.Attribute{Name: a.name, Value: a.value.value})
		}
	}
	if c.group.static {
		e.GroupID = c.group.value
	}
	return e.ValidateEnvelope(1, 0) // any body
}

// checkStaticPubSub is checkStatic for what Pub/Sub is told of every message.
func checkStaticPubSub(c *pubsubCloud) error {
	var attributes []pubsub.Attribute
	for _, a := range c.extra {
		if a.value.static && a.value.value != "" {
			attributes = append(attributes, pubsub.Attribute{Name: a.name, Value: a.value.value})
		}
	}
	key := ""
	if c.orderingKey.static {
		key = c.orderingKey.value
	}
	return pubsub.ValidateAttributes(attributes, key)
}
