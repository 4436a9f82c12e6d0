package output

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/config"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// hookReader makes a hook of a Benthos message by the configuration's hook section.
type hookReader struct {
	encoded bool // format ankusa
	forward message.ForwardRule

	id, sourceID, tenantID, receivedAt, contentType, dedupeKey, replayID field
	claim, claimSHA256, claimSize                                        field
}

func newHookReader(c config.Hook) *hookReader {
	r := &hookReader{
		encoded:     c.Format == config.FormatAnkusa,
		forward:     message.ForwardDefault(),
		id:          newField("hook.id", c.ID, "ankusa_id"),
		sourceID:    newField("hook.source_id", c.SourceID, "ankusa_source_id"),
		tenantID:    newField("hook.tenant_id", c.TenantID, "ankusa_tenant_id"),
		receivedAt:  newField("hook.received_at", c.ReceivedAt, "ankusa_received_at"),
		contentType: newField("hook.content_type", c.ContentType, "ankusa_content_type", "Content-Type"),
		dedupeKey:   newField("hook.dedupe_key", c.DedupeKey, "ankusa_dedupe_key"),
		replayID:    newField("hook.replay_id", c.ReplayID, "ankusa_replay_id"),
		claim:       newField("hook.claim", c.Claim, "ankusa_claim"),
		claimSHA256: newField("hook.claim_sha256", c.ClaimSHA256, "ankusa_claim_sha256"),
		claimSize:   newField("hook.claim_size", c.ClaimSize, "ankusa_claim_size"),
	}
	if c.ForwardHeaders != nil {
		r.forward = message.ForwardNames(c.ForwardHeaders)
	}
	return r
}

// read fills it.hook, and for an encoded message it.raw, from message i of the batch.
func (r *hookReader) read(v *view, i int, it *item) error {
	body, err := v.batch[i].AsBytes()
	if err != nil {
		return classify.Permanentf("message", "invalid_field", "body: can't be read as bytes")
	}
	if r.encoded {
		d, err := message.Decode(body)
		if err != nil {
			return err
		}
		it.decoded, it.raw = d, body
		return nil
	}
	return r.raw(v, i, body, &it.hook)
}

// raw builds the hook of a provider's body and checks it.
func (r *hookReader) raw(v *view, i int, body []byte, h *message.Hook) (err error) {
	var receivedAt, claimRef, claimSHA256, claimSize string
	for _, x := range [...]struct {
		f   *field
		dst *string
	}{
		{&r.id, &h.ID}, {&r.sourceID, &h.SourceID}, {&r.tenantID, &h.TenantID}, {&r.receivedAt, &receivedAt},
		{&r.contentType, &h.ContentType}, {&r.dedupeKey, &h.DedupeKey}, {&r.replayID, &h.ReplayID},
		{&r.claim, &claimRef}, {&r.claimSHA256, &claimSHA256}, {&r.claimSize, &claimSize},
	} {
		if *x.dst, err = v.resolve(x.f, i); err != nil {
			return err
		}
	}
	if h.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return classify.Transientf("message", "no_entropy", "no id could be made: %w", err)
		}
		h.ID = id.String()
	}
	if h.SourceID == "" {
		return classify.Permanentf("message", "invalid_field",
			"source_id: is empty; set hook.source_id, or the metadata ankusa_source_id, for every message")
	}
	if h.ReceivedAt, err = parseMillis(receivedAt); err != nil {
		return err
	}
	if claimRef != "" {
		if h.Claim, err = message.ParseClaim(claimRef, claimSHA256, claimSize); err != nil {
			return err
		}
	}
	if h.Headers, err = r.headers(v.batch[i]); err != nil {
		return err
	}
	h.Body = body
	return h.Validate()
}

// headers takes what may travel of the message's metadata.
func (r *hookReader) headers(m *service.Message) (map[string]string, error) {
	return r.forward.Select(func(yield func(key, value string) bool) {
		// The engine's walk ends at the first error, whose only meaning here is "enough".
		_ = m.MetaWalk(func(key, value string) error {
			if !yield(key, value) {
				return errEnough
			}
			return nil
		})
	})
}

// parseMillis reads received_at; empty means now. A whole number in another spelling, such as the
// 1.7375e+12 of a float, is accepted.
func parseMillis(s string) (int64, error) {
	if s == "" {
		return time.Now().UnixMilli(), nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil // its range is the hook's own check
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f), nil
	}
	return 0, classify.Permanentf("message", "invalid_field",
		"received_at: is no whole number of Unix milliseconds (%d bytes of text); use timestamp_unix_milli()", len(s))
}

// errEnough ends a walk over metadata.
var errEnough = errors.New("enough")
