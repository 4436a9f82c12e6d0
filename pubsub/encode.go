package pubsub

import (
	"encoding/base64"

	"github.com/ankusa-connect/ankusa-connect/internal/jsonstring"
)

const (
	requestOpen  = `{"messages":[`
	requestClose = `]}`
	// requestOverhead is what a body holds beside its messages. WireSize counts a comma for every
	// message and the last has none, hence the one less.
	requestOverhead = len(requestOpen) + len(requestClose) - 1

	dataOpen       = `"data":"`
	attributesOpen = `"attributes":{`
	keyOpen        = `"orderingKey":`
)

// SizeFor returns what [Message.Size] and [Message.WireSize] will be, before the data exists: dataLen
// is the number of its bytes.
func SizeFor(dataLen int, attrs []Attribute, key string) (size, wire int) {
	size, wire = dataLen, len(`{},`)
	fields := 0
	if dataLen > 0 {
		fields++
		wire += len(dataOpen) + base64.StdEncoding.EncodedLen(dataLen) + len(`"`)
	}
	if len(attrs) > 0 {
		fields++
		wire += len(attributesOpen) + len(attrs) - 1 + len(`}`)
		for i := range attrs {
			size += len(attrs[i].Name) + len(attrs[i].Value)
			wire += jsonstring.Len(attrs[i].Name) + len(`:`) + jsonstring.Len(attrs[i].Value)
		}
	}
	if key != "" {
		fields++
		size += len(key)
		wire += len(keyOpen) + jsonstring.Len(key)
	}
	return size, wire + max(fields-1, 0)
}

// bodySize is the exact length of what appendRequest appends for msgs, of which there is at least one.
func bodySize(msgs []Message) int {
	n := requestOverhead
	for i := range msgs {
		n += msgs[i].WireSize()
	}
	return n
}

// appendRequest appends the body of a topics.publish request. Text must have passed
// [ValidateAttributes]: what is not UTF-8 would be copied as it is.
func appendRequest(dst []byte, msgs []Message) []byte {
	dst = append(dst, requestOpen...)
	for i := range msgs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMessage(dst, &msgs[i])
	}
	return append(dst, requestClose...)
}

func appendMessage(dst []byte, m *Message) []byte {
	dst = append(dst, '{')
	if len(m.Data) > 0 {
		dst = append(dst, dataOpen...)
		dst = base64.StdEncoding.AppendEncode(dst, m.Data)
		dst = append(dst, '"')
	}
	if len(m.Attributes) > 0 {
		if len(m.Data) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, attributesOpen...)
		for i := range m.Attributes {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonstring.Append(dst, m.Attributes[i].Name)
			dst = append(dst, ':')
			dst = jsonstring.Append(dst, m.Attributes[i].Value)
		}
		dst = append(dst, '}')
	}
	if m.OrderingKey != "" {
		if len(m.Data) > 0 || len(m.Attributes) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, keyOpen...)
		dst = jsonstring.Append(dst, m.OrderingKey)
	}
	return append(dst, '}')
}
