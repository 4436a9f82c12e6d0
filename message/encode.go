package message

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/ankusa-connect/ankusa-connect/claim"
)

// The messages without any value. Size counts from them; a test holds them to what AppendTo writes.
const (
	skeleton       = `{"v":1,"id":,"source_id":,"tenant_id":,"received_at":,"content_type":,"size":,"dedupe_key":,"replay_id":,"idempotency_key":,"headers":{}`
	inlineSkeleton = skeleton + `,"sha256":"","body_base64":""}`
	claimSkeleton  = skeleton + `,"claim":"","sha256":""}`
)

// stackHeaders is how many header names are sorted without the heap. Requests rarely have thirty.
const stackHeaders = 64

// Size returns how many bytes AppendTo appends, without encoding.
func (h *Hook) Size() int {
	n := stringLen(h.ID) + stringLen(h.SourceID) + nullableLen(h.TenantID) + decimalLen(h.ReceivedAt) +
		nullableLen(h.ContentType) + nullableLen(h.DedupeKey) + nullableLen(h.ReplayID) + h.keyLen()
	for name, value := range h.Headers {
		n += stringLen(name) + len(":") + stringLen(value)
	}
	n += max(0, len(h.Headers)-1) // commas
	if c := h.Claim; c != nil {
		return n + len(claimSkeleton) + decimalLen(c.Size) + c.Ref.Len() + len(c.SHA256)
	}
	return n + len(inlineSkeleton) + decimalLen(int64(len(h.Body))) + hex.EncodedLen(sha256.Size) + base64.StdEncoding.EncodedLen(len(h.Body))
}

// AppendTo appends the message to dst and returns the longer slice. The hook must have passed
// Validate. It is not changed, and nothing of it is kept.
func (h *Hook) AppendTo(dst []byte) []byte {
	size := int64(len(h.Body))
	if h.Claim != nil {
		size = h.Claim.Size
	}
	dst = append(dst, `{"v":1,"id":`...)
	dst = appendString(dst, h.ID)
	dst = append(dst, `,"source_id":`...)
	dst = appendString(dst, h.SourceID)
	dst = append(dst, `,"tenant_id":`...)
	dst = appendNullable(dst, h.TenantID)
	dst = append(dst, `,"received_at":`...)
	dst = strconv.AppendInt(dst, h.ReceivedAt, 10)
	dst = append(dst, `,"content_type":`...)
	dst = appendNullable(dst, h.ContentType)
	dst = append(dst, `,"size":`...)
	dst = strconv.AppendInt(dst, size, 10)
	dst = append(dst, `,"dedupe_key":`...)
	dst = appendNullable(dst, h.DedupeKey)
	dst = append(dst, `,"replay_id":`...)
	dst = appendNullable(dst, h.ReplayID)
	dst = append(dst, `,"idempotency_key":`...)
	dst = h.appendKey(dst)
	dst = append(dst, `,"headers":`...)
	dst = appendHeaders(dst, h.Headers)
	if c := h.Claim; c != nil {
		dst = append(dst, `,"claim":"`...)
		dst = c.Ref.AppendTo(dst)
		dst = append(dst, `","sha256":"`...)
		dst = append(dst, c.SHA256...)
		return append(dst, `"}`...)
	}
	const between, end = `","body_base64":"`, `"}`
	dst = append(dst, `,"sha256":"`...)
	sum := sha256.Sum256(h.Body)
	// Room for all of the rest at once: growing after the body would copy it.
	dst = slices.Grow(dst, hex.EncodedLen(sha256.Size)+len(between)+base64.StdEncoding.EncodedLen(len(h.Body))+len(end))
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, between...)
	dst = base64.StdEncoding.AppendEncode(dst, h.Body)
	return append(dst, end...)
}

// appendKey appends IdempotencyKey as a JSON string without putting it together first.
func (h *Hook) appendKey(dst []byte) []byte {
	if h.DedupeKey == "" {
		return appendString(dst, h.ID)
	}
	dst = append(dst, '"')
	dst = appendEscaped(dst, cmp.Or(h.TenantID, claim.DefaultTenant))
	dst = append(dst, ':')
	dst = appendEscaped(dst, h.SourceID)
	dst = append(dst, ':')
	dst = appendEscaped(dst, h.DedupeKey)
	return append(dst, '"')
}

func (h *Hook) keyLen() int {
	if h.DedupeKey == "" {
		return stringLen(h.ID)
	}
	return escapedLen(cmp.Or(h.TenantID, claim.DefaultTenant)) + escapedLen(h.SourceID) + escapedLen(h.DedupeKey) + len(`"::"`)
}

// appendHeaders appends headers as an object sorted by name: a map has no order, a message has.
func appendHeaders(dst []byte, headers map[string]string) []byte {
	var onStack [stackHeaders]string
	names := onStack[:0]
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, name)
		dst = append(dst, ':')
		dst = appendString(dst, headers[name])
	}
	return append(dst, '}')
}

func decimalLen(n int64) int {
	var digits [20]byte // the longest is -9223372036854775808
	return len(strconv.AppendInt(digits[:0], n, 10))
}
