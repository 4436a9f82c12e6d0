package sqs

import (
	"strings"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Limits of the service: the "Amazon SQS message quotas" page of its developer guide, and the API
// reference's SendMessage and SendMessageBatch.
const (
	MaxEntries       = 10      // of a request
	MaxMessageBytes  = 1 << 20 // of a message, and of a request's messages together
	MaxAttributes    = 10      // of a message
	MaxDelaySeconds  = 900
	maxIDChars       = 128 // of a group or deduplication id
	maxAttributeName = 256
)

const (
	service  = "sqs"
	dataType = "String" // the only one we send; its name counts towards a message's size
)

// Codes of our own in errors.
const (
	CodeTooLarge      = "message_too_large"
	CodeInvalidField  = "invalid_field"
	CodeMD5Mismatch   = "md5_mismatch"
	CodeUnexpected    = "unexpected_reply"
	CodeMissing       = "missing_entry"
	CodeHeld          = "held"
	CodeNoCredentials = "no_credentials"
)

// Attribute is a message attribute of type String.
type Attribute struct{ Name, Value string }

// Entry is one message. Send doesn't change it.
type Entry struct {
	Body       []byte
	Attributes []Attribute
	// GroupID is the MessageGroupId: required on a FIFO queue; on a standard queue a label that lets
	// the service deliver tenants fairly and orders nothing. Empty is none.
	GroupID string
	// DeduplicationID is the MessageDeduplicationId: required on a FIFO queue, never sent to another.
	DeduplicationID string
	// DelaySeconds postpones delivery, 0 to 900. Nil leaves it to the queue. It is never sent to a FIFO
	// queue, which knows no delay of a single message.
	DelaySeconds *int32
}

// Size returns what the service counts, in bytes: the body and each attribute's name, type and value.
func (e *Entry) Size() int { return len(e.Body) + e.EnvelopeSize() }

// EnvelopeSize returns the attributes' part of [Entry.Size].
func (e *Entry) EnvelopeSize() int {
	n := 0
	for i := range e.Attributes {
		n += len(e.Attributes[i].Name) + len(dataType) + len(e.Attributes[i].Value)
	}
	return n
}

// Validate checks everything about the message that can be known without the service: its size against
// maxMessageBytes (the queue's limit, at most [MaxMessageBytes], which zero means too), the body's
// characters, attributes, ids and delay. The error is a permanent [*classify.Error] that names the
// field and the limit.
func (e *Entry) Validate(maxMessageBytes int) error {
	if err := e.ValidateEnvelope(len(e.Body), maxMessageBytes); err != nil {
		return err
	}
	return checkText("the message body", "", e.Body)
}

// ValidateEnvelope is Validate without a look at the body, which may not exist yet: for a body of
// bodyBytes bytes that is known to hold only characters that SQS takes, such as our own encoding.
func (e *Entry) ValidateEnvelope(bodyBytes, maxMessageBytes int) error {
	limit := MaxMessageBytes
	if maxMessageBytes > 0 {
		limit = min(limit, maxMessageBytes)
	}
	if bodyBytes == 0 {
		return invalid("the message body is empty: SQS takes no empty message")
	}
	if err := checkAttributes(e.Attributes); err != nil {
		return err
	}
	if err := checkID("message_group_id", e.GroupID); err != nil {
		return err
	}
	if err := checkID("the deduplication id", e.DeduplicationID); err != nil {
		return err
	}
	if d := e.DelaySeconds; d != nil && (*d < 0 || *d > MaxDelaySeconds) {
		return invalid("delay_seconds is %d: SQS takes 0 to %d", *d, MaxDelaySeconds)
	}
	if size := bodyBytes + e.EnvelopeSize(); size > limit {
		return classify.Permanentf(service, CodeTooLarge,
			"the message has %d bytes with its attributes, the limit is %d: let the claim check take its body or lower inline_max_bytes", size, limit)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return classify.Permanentf(service, CodeInvalidField, format, args...)
}

func checkAttributes(attributes []Attribute) error {
	if len(attributes) > MaxAttributes {
		return invalid("the message has %d attributes: SQS takes %d", len(attributes), MaxAttributes)
	}
	for i := range attributes {
		a := &attributes[i]
		if !validAttributeName(a.Name) {
			return invalid("attribute name %q: SQS takes 1 to %d letters, digits, _, - and single inner dots, not beginning with AWS. or Amazon.", clip(a.Name), maxAttributeName)
		}
		for j := range i { // at most 45 comparisons; a map would cost more
			if attributes[j].Name == a.Name {
				return invalid("attribute %s occurs twice", a.Name)
			}
		}
		if a.Value == "" {
			return invalid("attribute %s is empty: SQS takes no empty value, so leave it out", a.Name)
		}
		if err := checkText("attribute ", a.Name, a.Value); err != nil {
			return err
		}
	}
	return nil
}

func validAttributeName(name string) bool {
	if name == "" || len(name) > maxAttributeName || name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, "..") {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	lower := strings.ToLower(name)
	return !strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.")
}

// checkID takes what the service takes of an optional id: up to 128 letters, digits and ASCII
// punctuation, which are exactly the visible ASCII characters.
func checkID(what, id string) error {
	for i := 0; i < len(id); i++ {
		if c := id[i]; c <= ' ' || c > '~' {
			r, _ := utf8.DecodeRuneInString(id[i:])
			return invalid("%s holds %U at byte %d: SQS takes letters, digits and ASCII punctuation", what, r, i)
		}
	}
	if len(id) > maxIDChars {
		return invalid("%s has %d characters: SQS takes %d", what, len(id), maxIDChars)
	}
	return nil
}

// clip shortens what is quoted in an error.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
