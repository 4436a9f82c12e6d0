package localpubsub

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The limits, from https://cloud.google.com/pubsub/quotas#resource_limits except where stated.
const (
	// MaxBodyBytes is the largest HTTP body of a request. Google's front end states it in its
	// refusal: "Request payload size exceeds the limit: 10485760 bytes."
	MaxBodyBytes = 10_485_760
	// MaxAckBodyBytes is the same for Acknowledge and ModifyAckDeadline.
	MaxAckBodyBytes = 524_288
	// MaxMessages is how many messages one publish request may hold.
	MaxMessages = 1000
	// MaxRequestBytes bounds the messages of one publish request together, and so each of them:
	// data before base64, attribute names and values, ordering keys.
	MaxRequestBytes = 10_000_000
	// MaxAttributes is how many attributes one message may have.
	MaxAttributes = 100
	// MaxAttributeNameBytes, MaxAttributeValueBytes and MaxOrderingKeyBytes bound one of each.
	MaxAttributeNameBytes  = 256
	MaxAttributeValueBytes = 1024
	MaxOrderingKeyBytes    = 1024
)

const quotas = " Refer to https://cloud.google.com/pubsub/quotas for more information."

// checkPublish applies the limits to a decoded request. The first violation wins.
func checkPublish(msgs []*StoredMessage) *apiError {
	switch {
	case len(msgs) == 0:
		return invalid("The value for message_count is too small. You passed 0 in the request, but the minimum value is 1.")
	case len(msgs) > MaxMessages:
		return invalid("The value for message_count is too large. You passed %d in the request, but the maximum value is %d.", len(msgs), MaxMessages)
	}
	total := 0
	for _, m := range msgs {
		if err := checkMessage(m); err != nil {
			return err
		}
		total += m.Size()
	}
	if total > MaxRequestBytes {
		return invalid("The value for request_size is too large. You passed %d in the request, but the maximum value is %d.", total, MaxRequestBytes)
	}
	for _, m := range msgs[1:] {
		if m.OrderingKey != msgs[0].OrderingKey {
			// Not INVALID_ARGUMENT: this is the status that users of the service report.
			return refuse("FAILED_PRECONDITION", "In a single publish request, all messages must have no ordering key or they must all have the same ordering key.")
		}
	}
	return nil
}

func checkMessage(m *StoredMessage) *apiError {
	switch {
	case len(m.Data) == 0 && len(m.Attributes) == 0:
		return invalid("One or more messages in the publish request is empty. Each message must contain either non-empty data, or at least one attribute.")
	case len(m.Attributes) > MaxAttributes:
		return invalid("A message in the request has too many attributes. The number is %d, but the maximum allowed is %d."+quotas, len(m.Attributes), MaxAttributes)
	case len(m.OrderingKey) > MaxOrderingKeyBytes:
		return invalid("The ordering key in the request is too long. The length is %d bytes, but the maximum allowed is %d."+quotas, len(m.OrderingKey), MaxOrderingKeyBytes)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		switch value := m.Attributes[name]; {
		case name == "":
			return invalid("A message in the request has an attribute with an empty key.")
		case strings.HasPrefix(name, "goog"):
			return invalid("The attribute %q in the request has a key that starts with \"goog\", which is reserved.", name)
		case len(name) > MaxAttributeNameBytes:
			return invalid("The attribute %q in the request has a key that is too long. The length is %d characters, but the maximum allowed is %d."+quotas, name, len(name), MaxAttributeNameBytes)
		case len(value) > MaxAttributeValueBytes:
			return invalid("The attribute %q in the request has a value that is too long. The length is %d characters, but the maximum allowed is %d."+quotas, name, len(value), MaxAttributeValueBytes)
		}
	}
	return nil
}

// resourceID is https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names: it begins with a
// letter and has 3 to 255 characters.
var resourceID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// checkName checks a resource's full name.
func checkName(n name) *apiError {
	if n.project == "" || strings.Contains(n.project, "/") || !resourceID.MatchString(n.id) || strings.HasPrefix(n.id, "goog") {
		return invalid("Invalid resource name given (name=%s). Refer to https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names for more information.", n)
	}
	return nil
}
