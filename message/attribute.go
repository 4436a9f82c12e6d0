package message

// Attribute is one attribute of a queue message: what a subscriber can filter on without the body.
type Attribute struct{ Name, Value string }

// MaxAttributes is the most that AppendAttributes appends. SQS takes 10 of a message, so two are left
// for configuration.
const MaxAttributes = 8

// AppendAttributes appends the hook's attributes, always in the same order. Those without a value are
// left out, because SQS refuses an empty one.
func (h *Hook) AppendAttributes(dst []Attribute) []Attribute {
	return appendAttributes(dst, h.ID, h.SourceID, h.TenantID, h.IdempotencyKey(), h.DedupeKey, h.ReplayID)
}

// AppendAttributes is as [Hook.AppendAttributes], from the message's fields.
func (d *Decoded) AppendAttributes(dst []Attribute) []Attribute {
	return appendAttributes(dst, d.ID, d.SourceID, d.TenantID, d.IdempotencyKey(), d.DedupeKey, d.ReplayID)
}

func appendAttributes(dst []Attribute, id, source, tenant, key, dedupe, replay string) []Attribute {
	for _, a := range [MaxAttributes]Attribute{
		{"ankusa_id", id},
		{"ankusa_source_id", source},
		{"ankusa_tenant_id", tenant},
		{"ankusa_message_version", "1"},
		{"ankusa_idempotency_key", key},
		{"content_type", "application/json"}, // the message's, not the hook's
		{"ankusa_dedupe_key", dedupe},
		{"ankusa_replay_id", replay},
	} {
		if a.Value != "" {
			dst = append(dst, a)
		}
	}
	return dst
}
