package pubsub

// Attribute is one attribute of a message.
type Attribute struct{ Name, Value string }

// Message is one message to be published. The client only reads it.
type Message struct {
	Data        []byte // any bytes; base64 on the wire
	Attributes  []Attribute
	OrderingKey string // empty means none
}

// Size is what Pub/Sub counts towards its message and request limits: the bytes of data before base64,
// of attribute names and values, and of the ordering key.
func (m *Message) Size() int {
	size, _ := SizeFor(len(m.Data), m.Attributes, m.OrderingKey)
	return size
}

// WireSize is the message's exact share of the HTTP body in bytes, the comma before or after it
// included. A body is the sum of its messages' WireSize and a constant, which [MaxWireBytes] has
// already taken off.
func (m *Message) WireSize() int {
	_, wire := SizeFor(len(m.Data), m.Attributes, m.OrderingKey)
	return wire
}
