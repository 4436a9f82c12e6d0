package localsqs

import (
	"regexp"
	"slices"
	"strings"
)

// Limits of the service, from "Amazon SQS message quotas" in the developer guide and the API
// reference of SendMessageBatch.
const (
	MaxMessageBytes    = 1_048_576 // body and attributes of one message; the highest MaximumMessageSize
	MaxBatchBytes      = 1_048_576 // the messages of one batch together
	MaxBatchEntries    = 10
	MaxAttributes      = 10 // per message
	maxAttributeName   = 256
	maxAttributeType   = 256
	maxDelaySeconds    = 900
	maxGroupID         = 128 // MessageGroupId and MessageDeduplicationId
	minMaximumMessage  = 1024
	maxVisibility      = 43_200
	maxReceiveMessages = 10
	maxWaitSeconds     = 20
)

// size is what the service counts: bytes, not characters, of the body and of each attribute's name,
// data type and value. System attributes don't count.
func (e *entry) size() int {
	n := len(e.body)
	for i := range e.attributes {
		a := &e.attributes[i]
		n += len(a.name) + len(a.dataType) + len(a.value)
	}
	return n
}

var entryID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// rules are what a queue's attributes ask of a message.
type rules struct {
	fifo, contentBased bool
	maxBytes           int
}

// rulesLocked is taken before a message is checked, which happens without the lock.
func (q *queue) rulesLocked() rules {
	return rules{fifo: q.fifo, contentBased: q.contentBased(), maxBytes: q.maxMessageBytes()}
}

// check applies the rules for one message to a queue. The order is the service's where it is known:
// what is missing, then what is malformed, then what does not suit the queue.
func (e *entry) check(q rules) *apiError {
	if e.body == "" {
		return missingParameter("MessageBody")
	}
	if c, bad := forbidden(e.body); bad {
		return fail("InvalidMessageContents", "Invalid binary character '#x%X' was found in the message body, the set of allowed characters is #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF].", c)
	}
	if n := len(e.attributes); n > MaxAttributes {
		return invalidParameter("Number of message attributes [%d] exceeds the allowed maximum [%d].", n, MaxAttributes)
	}
	for i := range e.attributes {
		if err := e.attributes[i].check(); err != nil {
			return err
		}
	}
	for i := range e.system {
		if a := &e.system[i]; a.name != "AWSTraceHeader" || a.base() != "String" || a.value == "" {
			return invalidParameter("Message system attribute '%s' is invalid.", a.name)
		}
	}
	if e.size() > q.maxBytes {
		return invalidParameter("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.maxBytes)
	}
	if d := e.delay; d != nil {
		if q.fifo && *d != 0 {
			return invalidParameter("Value %d for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.", *d)
		}
		if *d < 0 || *d > maxDelaySeconds {
			return invalidParameter("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= %d.", *d, maxDelaySeconds)
		}
	}
	if e.hasGroup && !groupID(e.group) {
		return invalidParameter("Value %s for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to %d in length.", e.group, maxGroupID)
	}
	if e.hasDeduplicaton && !groupID(e.deduplication) {
		return invalidParameter("Value %s for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to %d in length.", e.deduplication, maxGroupID)
	}
	if err := e.missing(q); err != nil {
		return err
	}
	if !q.fifo && e.hasDeduplicaton {
		return invalidParameter("Value %s for parameter MessageDeduplicationId is invalid. Reason: The request includes a parameter that is not valid for this queue type.", e.deduplication)
	}
	return nil
}

// missing applies the rules for what a message to a FIFO queue must have. In a batch the service
// refuses the whole request for them, as it has been seen to do, where other rules fail one entry.
func (e *entry) missing(q rules) *apiError {
	switch {
	case q.fifo && !e.hasGroup:
		return missingParameter("MessageGroupId")
	case q.fifo && !e.hasDeduplicaton && !q.contentBased:
		return invalidParameter("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

// number is what the service casts: up to 38 digits in a decimal notation, with an exponent.
var number = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)

func (a *attribute) check() *apiError {
	lower := strings.ToLower(a.name)
	switch {
	case a.name == "":
		return invalidParameter("The message attribute name must not be empty.")
	case len(a.name) > maxAttributeName:
		return invalidParameter("Length of message attribute name must be less than %d bytes.", maxAttributeName)
	case strings.IndexFunc(a.name, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
	}) >= 0:
		return invalidParameter("Message (user) attribute name '%s' contains invalid characters: it can include A-Z, a-z, 0-9, underscore, hyphen and dot.", a.name)
	case a.name[0] == '.' || a.name[len(a.name)-1] == '.' || strings.Contains(a.name, ".."):
		return invalidParameter("Message (user) attribute name '%s' can't start or end with a dot or hold two in a row.", a.name)
	case strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon."):
		return invalidParameter("Message (user) attribute name '%s' can't start with a reserved prefix.", a.name)
	case a.dataType == "":
		return invalidParameter("The message attribute '%s' must contain a non-empty message attribute type.", a.name)
	case len(a.dataType) > maxAttributeType:
		return invalidParameter("Length of message attribute type must be less than %d bytes.", maxAttributeType)
	case !slices.Contains([]string{"String", "Number", "Binary"}, a.base()):
		return invalidParameter("The message attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.", a.name)
	case a.hasListing:
		return invalidParameter("Message attribute list values in SendMessage operation are not supported.")
	case a.hasString && a.hasBinary,
		a.base() == "Binary" && !a.hasBinary,
		a.base() != "Binary" && !a.hasString,
		a.value == "":
		return invalidParameter("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", a.name, a.dataType)
	}
	if a.base() == "Binary" {
		return nil
	}
	if c, bad := forbidden(a.value); bad {
		return invalidParameter("Invalid binary character '#x%X' was found in the message attribute '%s' value, the set of allowed characters is #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF].", c, a.name)
	}
	if a.base() == "Number" {
		if digits := strings.Count(a.value, "") - 1; digits > 64 || !number.MatchString(a.value) {
			return invalidParameter("Could not cast message attribute '%s' value to number.", a.name)
		}
	}
	return nil
}

// forbidden finds the first character of s that SQS does not take: anything but #x9, #xA, #xD,
// #x20–#xD7FF, #xE000–#xFFFD and #x10000–#x10FFFF. s is UTF-8: the decoder has seen to that.
func forbidden(s string) (rune, bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x20 && c != 0xEF: // also every byte of a longer sequence
		case c == 0xEF: // of three-byte sequences only EF BF BE and EF BF BF are out
			if len(s)-i >= 3 && s[i+1] == 0xBF && s[i+2] >= 0xBE {
				return 0xFFC0 | rune(s[i+2]&0x3F), true
			}
		case c != 0x09 && c != 0x0A && c != 0x0D:
			return rune(c), true
		}
	}
	return 0, false
}

// groupID reports whether s can be a MessageGroupId or MessageDeduplicationId: 1–128 of A-Z, a-z,
// 0-9 and !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~, which is ASCII from ! to ~.
func groupID(s string) bool {
	if s == "" || len(s) > maxGroupID {
		return false
	}
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}
