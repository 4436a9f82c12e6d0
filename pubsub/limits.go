package pubsub

// Limits of the service, from https://cloud.google.com/pubsub/quotas#resource_limits unless said
// otherwise.
const (
	// MaxEntries is the largest number of messages in one request, and the default.
	MaxEntries = 1000
	// MaxRequestBytes is the most data, attributes and ordering keys that one request may carry, counted
	// before base64.
	MaxRequestBytes = 10_000_000
	// MaxMessageBytes is the most that one message may hold, counted as [Message.Size] does; also the
	// default.
	MaxMessageBytes = 10_000_000
	// MaxBodyBytes is the largest HTTP body that the REST front end reads: 10 MiB ("Request payload size
	// exceeds the limit: 10485760 bytes").
	MaxBodyBytes = 10_485_760
	// MaxWireBytes is the most that the [Message.WireSize] of one request's messages may sum to.
	MaxWireBytes = MaxBodyBytes - requestOverhead
	// MaxAttributes is the largest number of attributes of one message.
	MaxAttributes = 100
	// MaxAttributeNameBytes and MaxAttributeValueBytes bound one attribute.
	MaxAttributeNameBytes  = 256
	MaxAttributeValueBytes = 1024
	// MaxOrderingKeyBytes bounds an ordering key.
	MaxOrderingKeyBytes = 1024
	// MaxTopicBytes bounds a topic's short name
	// (https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names).
	MaxTopicBytes = 255

	// DefaultMaxBytes is how much data one request carries unless Options say otherwise. Base64 makes
	// 10,000,000 bytes of it, which leaves room for keys and escapes below MaxBodyBytes.
	DefaultMaxBytes = 7_500_000
)
