package pubsub

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

const service = "pubsub"

// Validate applies every rule that can be known before a request: one bad message would make the
// service refuse all that travel with it. maxMessageBytes bounds Size; zero means [MaxMessageBytes].
// The error is permanent, code "invalid_field" or "message_too_large".
func (m *Message) Validate(maxMessageBytes int) error {
	if len(m.Data) == 0 && len(m.Attributes) == 0 {
		// https://cloud.google.com/pubsub/docs/reference/rest/v1/PubsubMessage
		return invalid("data", "is empty and there is no attribute: Pub/Sub takes no empty message")
	}
	if err := ValidateAttributes(m.Attributes, m.OrderingKey); err != nil {
		return err
	}
	size, wire := SizeFor(len(m.Data), m.Attributes, m.OrderingKey)
	return ValidateSize(size, wire, maxMessageBytes)
}

// ValidateSize checks what [SizeFor] returned: size against maxMessageBytes (zero means
// [MaxMessageBytes]), and the message's own request against [MaxBodyBytes]. The error is permanent,
// code "message_too_large".
func ValidateSize(size, wire, maxMessageBytes int) error {
	if maxMessageBytes <= 0 {
		maxMessageBytes = MaxMessageBytes
	}
	if size > maxMessageBytes {
		return classify.Permanentf(service, "message_too_large",
			"data, attributes and ordering key are %d bytes, limit %d: configure claim_check.store and lower inline_max_bytes so that the body travels as a claim", size, maxMessageBytes)
	}
	if wire > MaxWireBytes {
		return classify.Permanentf(service, "message_too_large",
			"a request with this message alone is %d bytes (base64 adds a third to its %d), the REST API reads at most %d: configure claim_check.store and lower inline_max_bytes so that the body travels as a claim", wire+requestOverhead, size, MaxBodyBytes)
	}
	return nil
}

// ValidateAttributes checks attributes and ordering key: their number, length, names and UTF-8. The
// error is permanent, code "invalid_field", and names the field.
func ValidateAttributes(attrs []Attribute, key string) error {
	if len(attrs) > MaxAttributes {
		return invalid("attributes", "number %d, at most %d are allowed", len(attrs), MaxAttributes)
	}
	for i := range attrs {
		name, value := attrs[i].Name, attrs[i].Value
		switch {
		case name == "":
			return invalid("attributes", "hold an empty name")
		case len(name) > MaxAttributeNameBytes:
			return invalid(attributeField(name), "has a name of %d bytes, at most %d are allowed", len(name), MaxAttributeNameBytes)
		case !utf8.ValidString(name):
			return invalid(attributeField(name), "has a name that is not valid UTF-8")
		case strings.HasPrefix(name, "goog"):
			return invalid(attributeField(name), "begins with goog, which Google reserves")
		case len(value) > MaxAttributeValueBytes:
			return invalid(attributeField(name), "is %d bytes, at most %d are allowed", len(value), MaxAttributeValueBytes)
		case !utf8.ValidString(value):
			return invalid(attributeField(name), "is not valid UTF-8")
		}
		// At most 100, usually eight: no map is worth its making.
		for j := range i {
			if attrs[j].Name == name {
				return invalid(attributeField(name), "is given twice")
			}
		}
	}
	switch {
	case len(key) > MaxOrderingKeyBytes:
		return invalid("ordering_key", "is %d bytes, at most %d are allowed", len(key), MaxOrderingKeyBytes)
	case !utf8.ValidString(key):
		return invalid("ordering_key", "is not valid UTF-8")
	}
	return nil
}

// CheckTopic refuses what cannot be a topic's short name, with an error that is permanent, code
// "invalid_field". Whether the name is long enough, begins with a letter and exists is left to the
// service.
func CheckTopic(topic string) error {
	if topic == "" {
		return invalid("topic", "is empty")
	}
	if rest, ok := strings.CutPrefix(topic, "projects/"); ok {
		project, short, _ := strings.Cut(rest, "/topics/")
		return invalid("topic", "is a full resource name: give the short name %q as topic and %q as project", shorten(short), shorten(project))
	}
	if len(topic) > MaxTopicBytes {
		return invalid("topic", "is %d bytes, at most %d are allowed", len(topic), MaxTopicBytes)
	}
	for i := range len(topic) {
		if c := topic[i]; !isAlphanumeric(c) && strings.IndexByte("-_.~+%", c) < 0 {
			return invalid("topic", "%q may hold only letters, digits and - _ . ~ + %%", shorten(topic))
		}
	}
	if topic == "." || topic == ".." {
		return invalid("topic", "%q is a path, not a name", topic)
	}
	return nil
}

// CheckProject refuses what cannot be a project id (or number) with a config error, code
// "invalid_project".
func CheckProject(project string) error {
	if project == "" {
		return classify.Configf(service, "invalid_project", "no project: set project or GOOGLE_CLOUD_PROJECT")
	}
	// A colon and dots belong to domain-scoped projects, example.com:name.
	foreign := func(r rune) bool {
		return r >= utf8.RuneSelf || !isAlphanumeric(byte(r)) && !strings.ContainsRune("-_.:", r)
	}
	if strings.ContainsFunc(project, foreign) || strings.Trim(project, ".") == "" {
		return classify.Configf(service, "invalid_project", "project %q is not a project id: letters, digits, hyphens, as in my-project-123", shorten(project))
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func attributeField(name string) string { return "attributes." + shorten(name) }

func invalid(field, format string, args ...any) *classify.Error {
	return classify.Permanentf(service, "invalid_field", "%s %s", field, fmt.Sprintf(format, args...))
}

// shorten makes text of unknown origin fit for an error: at most 64 bytes, printable, valid UTF-8.
func shorten(s string) string {
	const most = 64
	cut := len(s) > most
	if cut {
		s = s[:most]
	}
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	if cut {
		s += "…"
	}
	return s
}
