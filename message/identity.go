package message

import (
	"cmp"

	"github.com/ankusa-connect/ankusa-connect/claim"
)

// IdempotencyKey returns what consumers deduplicate on: tenant:source_id:dedupe_key when the provider
// gave a key of its own, with "default" for a hook without a tenant, else the id. A replay keeps the
// original's.
func (h *Hook) IdempotencyKey() string {
	return idempotencyKey(h.ID, h.SourceID, h.TenantID, h.DedupeKey)
}

// IdempotencyKey returns the one that the message carries, or, when that is empty or missing, the one
// that its other fields give as in [Hook.IdempotencyKey].
func (d *Decoded) IdempotencyKey() string {
	if d.shippedKey != "" {
		return d.shippedKey
	}
	return idempotencyKey(d.ID, d.SourceID, d.TenantID, d.DedupeKey)
}

func idempotencyKey(id, source, tenant, dedupe string) string {
	if dedupe == "" {
		return id
	}
	return cmp.Or(tenant, claim.DefaultTenant) + ":" + source + ":" + dedupe
}

// Group returns the default ordering scope of a FIFO queue: tenant_id/source_id, or /source_id without
// a tenant. It can reach 129 characters, one more than SQS takes.
func (h *Hook) Group() string { return h.TenantID + "/" + h.SourceID }

// Group is as [Hook.Group].
func (d *Decoded) Group() string { return d.TenantID + "/" + d.SourceID }

// DeduplicationID returns what a FIFO queue collapses retries by: the id, or id:replay:<replay_id>, so
// that a deliberate replay is stored.
func (h *Hook) DeduplicationID() string { return deduplicationID(h.ID, h.ReplayID) }

// DeduplicationID is as [Hook.DeduplicationID].
func (d *Decoded) DeduplicationID() string { return deduplicationID(d.ID, d.ReplayID) }

func deduplicationID(id, replay string) string {
	if replay == "" {
		return id
	}
	return id + ":replay:" + replay
}
