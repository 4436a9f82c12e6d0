package message

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/claim"
)

const (
	// Version is the "v" of a message. It changes only if a field changes meaning or goes away.
	Version = 1
	// DefaultInlineMaxBytes is the longest body that travels inside its message unless configured
	// otherwise; one byte more and the message carries a claim.
	DefaultInlineMaxBytes = 65_536
	// MaxReceivedAt is the latest received_at, in Unix milliseconds: what a claim id has room for.
	MaxReceivedAt = claim.MaxMillis
)

// Hook is one webhook as it was received. An empty string is "none", which ID and SourceID must not be.
type Hook struct {
	// ID names the stored hook. Every redelivery carries the same one.
	ID string
	// SourceID is which webhook source: 1 to 64 letters, digits, _ or -.
	SourceID string
	// TenantID is whose hook it is, in the same form, or none.
	TenantID string
	// ReceivedAt is when it was received, in Unix milliseconds, 0 to MaxReceivedAt. Together with ID
	// it names the hook's claim object, so for a retry to be the same it must be stable too.
	ReceivedAt int64
	// ContentType is the provider's, or none.
	ContentType string
	// DedupeKey is the provider's own key of the event, or none.
	DedupeKey string
	// ReplayID is set when this delivery is a replay.
	ReplayID string
	// Headers are the provider's request headers as [ForwardRule.Select] returns them: names in
	// lower case, none of those that are never forwarded.
	Headers map[string]string
	// Body is the raw body, any bytes. It is neither altered nor kept.
	Body []byte
	// Claim is set when the body has been stored: the message then carries the claim, and Body is
	// not read.
	Claim *Claim
}

// Claim says where a body is stored and how to know it again.
type Claim struct {
	Ref    claim.Ref
	SHA256 string // of the body, 64 lowercase hexadecimal digits
	Size   int64  // the body's length in bytes
}

// ParseClaim reads a claim that a hook brings along, from text as metadata has it. The error's text
// names the field (claim, sha256 or size) that is not what a message may carry.
func ParseClaim(ref, sha256, size string) (*Claim, error) {
	parsed, err := claim.ParseRef(ref)
	if err != nil {
		return nil, refuse(CodeInvalidField, "claim is not a claim ref: %w", err)
	}
	if !isDigest(sha256) {
		return nil, refuse(CodeInvalidField, needDigest)
	}
	n, err := strconv.ParseUint(size, 10, 63)
	if err != nil {
		return nil, refuse(CodeInvalidField, "size of a claim must be a number of bytes, 0 or more")
	}
	return &Claim{Ref: parsed, SHA256: sha256, Size: int64(n)}, nil
}

const needDigest = "sha256 of a claim must be 64 lowercase hexadecimal digits"

// Validate reports the first thing that keeps the hook from being a message, in the order of the
// fields. AppendTo relies on it.
func (h *Hook) Validate() error {
	if h.ID == "" {
		return refuse(CodeInvalidField, "id must not be empty")
	}
	if err := checkText("id", h.ID); err != nil {
		return err
	}
	// The pattern is that of a claim's tenant, which makes any tenant fit a ref.
	if !claim.ValidTenant(h.SourceID) {
		return refuse(CodeInvalidField, "source_id must be 1 to %d of A-Z a-z 0-9 _ - (it has %d bytes)", claim.MaxTenantLen, len(h.SourceID))
	}
	if h.TenantID != "" && !claim.ValidTenant(h.TenantID) {
		return refuse(CodeInvalidField, "tenant_id must be 1 to %d of A-Z a-z 0-9 _ - (it has %d bytes)", claim.MaxTenantLen, len(h.TenantID))
	}
	if h.ReceivedAt < 0 || h.ReceivedAt > MaxReceivedAt {
		return refuse(CodeInvalidField, "received_at must be Unix milliseconds from 0 to %d, not %d", int64(MaxReceivedAt), h.ReceivedAt)
	}
	if err := checkText("content_type", h.ContentType); err != nil {
		return err
	}
	if err := checkText("dedupe_key", h.DedupeKey); err != nil {
		return err
	}
	if err := checkText("replay_id", h.ReplayID); err != nil {
		return err
	}
	if err := h.validateHeaders(); err != nil {
		return err
	}
	return h.validateClaim()
}

func (h *Hook) validateHeaders() error {
	// The first bad name in key order, so that the same hook always gives the same error.
	var bad string
	found := false
	for name, value := range h.Headers {
		if checkHeader(name, value) != nil && (!found || name < bad) {
			bad, found = name, true
		}
	}
	if !found {
		return nil
	}
	return checkHeader(bad, h.Headers[bad])
}

// checkHeader refuses what cannot stand in a message's headers. It names the header, never its value.
func checkHeader(name, value string) error {
	switch {
	case !utf8.ValidString(name):
		return refuse(CodeInvalidField, "headers has a name that is not valid UTF-8: %q", name)
	case !utf8.ValidString(value):
		return refuse(CodeInvalidField, "headers has a value that is not valid UTF-8 under %q (byte %d of %d)", name, invalidAt(value)+1, len(value))
	case strings.ContainsFunc(name, func(r rune) bool { return 'A' <= r && r <= 'Z' }):
		return refuse(CodeInvalidField, "headers has a name that is not lowercase: %q", name)
	}
	return nil
}

func (h *Hook) validateClaim() error {
	c := h.Claim
	if c == nil {
		return nil
	}
	if err := c.Ref.Validate(); err != nil {
		return refuse(CodeInvalidField, "claim is not a claim ref: %w", err)
	}
	if !isDigest(c.SHA256) {
		return refuse(CodeInvalidField, needDigest)
	}
	if c.Size < 0 {
		return refuse(CodeInvalidField, "size of a claim must not be negative")
	}
	if tenant := cmp.Or(h.TenantID, claim.DefaultTenant); c.Ref.Tenant != tenant {
		return refuse(CodeTenantMismatch, "the claim is of tenant %q, the hook of %q", c.Ref.Tenant, tenant)
	}
	return nil
}

// isDigest reports whether s is a SHA-256 in the one spelling that messages use.
func isDigest[T string | []byte](s T) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
