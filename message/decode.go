package message

import (
	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Decoded is a message that somebody else encoded, found to be sound. An empty string is none: the
// message has null, nothing or an empty string there.
type Decoded struct {
	// Raw is the message as it came, and as it is to be sent: it may hold keys this program does not
	// know. It is the slice that Decode was given.
	Raw []byte

	ID          string // not empty
	SourceID    string // may be empty and need not match the pattern of Hook.SourceID
	TenantID    string // need not match the pattern either
	ReceivedAt  int64  // any integer, by intention Unix milliseconds
	ContentType string
	Size        int64 // the body's length in bytes
	DedupeKey   string
	ReplayID    string
	SHA256      string    // of the body; may be empty when the body is inline
	Claim       claim.Ref // the zero Ref when the body is inline

	shippedKey string
	headers    value // object, null or absent
	body       value // text, or absent when there is a claim
}

// Decode checks a message by the rules of docs/message-format.md, in their order, and returns what it
// says. raw is kept as [Decoded.Raw] and must not change while the result is in use. Errors are
// described in the package comment.
func Decode(raw []byte) (*Decoded, error) {
	fields, err := scan(raw)
	if err != nil {
		return nil, err
	}
	if v := fields[fieldVersion]; v.kind != integer || string(raw[v.start:v.end]) != "1" {
		return nil, refuse(CodeUnsupportedVersion, "v must be the integer %d", Version)
	}
	d := &Decoded{Raw: raw}
	if err := d.read(&fields); err != nil {
		return nil, err
	}
	if err := d.readBody(&fields); err != nil {
		return nil, err
	}
	return d, nil
}

// Hook returns the hook that the message tells of, with a body and headers of its own.
func (d *Decoded) Hook() *Hook {
	h := &Hook{
		ID: d.ID, SourceID: d.SourceID, TenantID: d.TenantID, ReceivedAt: d.ReceivedAt,
		ContentType: d.ContentType, DedupeKey: d.DedupeKey, ReplayID: d.ReplayID, Headers: d.Headers(),
	}
	if d.Inline() {
		h.Body = d.AppendBody(nil)
	} else {
		h.Claim = &Claim{Ref: d.Claim, SHA256: d.SHA256, Size: d.Size}
	}
	return h
}

// Inline reports whether the message holds the body itself; if not, it holds a claim.
func (d *Decoded) Inline() bool { return d.body.kind == text }

// read applies the rules about types, in their order.
func (d *Decoded) read(fields *[fieldCount]value) *classify.Error {
	var ok bool
	if v := fields[fieldID]; v.kind != text || v.start == v.end {
		return refuse(CodeInvalidField, "id must be a string that is not empty")
	}
	d.ID = textOf(d.Raw, fields[fieldID])
	if fields[fieldSourceID].kind != text {
		return refuse(CodeInvalidField, "source_id must be a string")
	}
	d.SourceID = textOf(d.Raw, fields[fieldSourceID])
	if d.ReceivedAt, ok = readInt(d.Raw, fields[fieldReceivedAt]); !ok {
		return refuse(CodeInvalidField, "received_at must be an integer of at most 64 bits")
	}
	if d.Size, ok = readInt(d.Raw, fields[fieldSize]); !ok || d.Size < 0 {
		return refuse(CodeInvalidField, "size must be an integer of 0 or more, of at most 64 bits")
	}
	for _, f := range [...]struct {
		name  string
		field int
		into  *string
	}{
		{"tenant_id", fieldTenantID, &d.TenantID},
		{"content_type", fieldContentType, &d.ContentType},
		{"dedupe_key", fieldDedupeKey, &d.DedupeKey},
		{"replay_id", fieldReplayID, &d.ReplayID},
		{"idempotency_key", fieldIdempotencyKey, &d.shippedKey},
	} {
		switch v := fields[f.field]; v.kind {
		case absent, null:
		case text:
			*f.into = textOf(d.Raw, v)
		default:
			return refuse(CodeInvalidField, "%s must be a string or null", f.name)
		}
	}
	d.headers = fields[fieldHeaders]
	if !headersOfStrings(d.Raw, d.headers) {
		return refuse(CodeInvalidField, "headers must be an object of strings or null")
	}
	switch v := fields[fieldSHA256]; v.kind {
	case absent, null:
	default:
		if v.kind == text {
			d.SHA256 = textOf(d.Raw, v)
		}
		if !isDigest(d.SHA256) {
			return refuse(CodeInvalidField, "sha256 must be 64 lowercase hexadecimal digits or null")
		}
	}
	return nil
}

func readInt(in []byte, v value) (int64, bool) {
	if v.kind != integer {
		return 0, false
	}
	return intOf(in, v)
}

// readBody applies the rules about the body and the claim.
func (d *Decoded) readBody(fields *[fieldCount]value) *classify.Error {
	body, ref := fields[fieldBody], fields[fieldClaim]
	hasBody, hasClaim := body.kind > null, ref.kind > null
	switch {
	case hasBody && hasClaim:
		return refuse(CodeAmbiguousBody, "both body_base64 and claim are there")
	case hasClaim:
		return d.readClaim(ref, fields[fieldTenantID])
	case !hasBody:
		return refuse(CodeMissingBody, "neither body_base64 nor claim is there")
	case body.kind != text:
		return refuse(CodeInvalidBodyBase64, "body_base64 must be a string")
	}
	d.body = body
	c := checkers.Get().(*bodyChecker)
	defer checkers.Put(c)
	n, ok := c.read(d.Raw, body, d.SHA256 != "")
	switch {
	case !ok:
		return refuse(CodeInvalidBodyBase64, "body_base64 must be padded standard base64 without white space")
	case n != d.Size:
		return refuse(CodeSizeMismatch, "the body has %d bytes, size says %d", n, d.Size)
	case d.SHA256 != "" && !c.matches(d.SHA256):
		return refuse(CodeIntegrity, "the body is not the one that sha256 tells of")
	}
	return nil
}

func (d *Decoded) readClaim(v, tenant value) *classify.Error {
	if v.kind != text {
		return refuse(CodeInvalidField, "claim must be a string")
	}
	ref, err := claim.ParseRef(textOf(d.Raw, v))
	if err != nil {
		return refuse(CodeInvalidField, "claim is not a claim ref: %w", err)
	}
	if d.SHA256 == "" {
		return refuse(CodeInvalidField, "sha256 must be there with a claim")
	}
	// A tenant that is there counts even when it is empty: an empty one cannot own a claim.
	if tenant.kind == text && d.TenantID != ref.Tenant {
		return refuse(CodeTenantMismatch, "the claim is of another tenant than tenant_id")
	}
	d.Claim = ref
	return nil
}
