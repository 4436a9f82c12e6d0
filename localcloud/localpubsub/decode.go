package localpubsub

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"unicode/utf8"
)

// decodePublish reads a publish request's body by the protobuf JSON mapping: names in camelCase or
// as in the .proto file, null for an absent field, bytes in either base64 alphabet with or without
// padding. A field that PublishRequest does not have is refused, as Google's servers do.
//
// What it returns shares no memory with body.
func decodePublish(body []byte) ([]*StoredMessage, *apiError) {
	if !utf8.Valid(body) {
		return nil, invalidPayload("Encountered non UTF-8 code points.")
	}
	d := publishDecoder{scanner: scanner{b: body}, names: make(map[string]string)}
	msgs := d.request()
	if d.end(); d.err != nil {
		return nil, d.err
	}
	return msgs, nil
}

type publishDecoder struct {
	scanner
	names map[string]string // attribute names seen, so that each is allocated once per request
}

func (d *publishDecoder) request() (msgs []*StoredMessage) {
	var seen uint
	d.object(func(name []byte) {
		switch string(name) {
		case "messages":
			if !d.once(&seen, 0, "messages") || d.null() {
				return
			}
			if d.peek() != '[' {
				d.invalidValue("messages", "message")
				return
			}
			d.array(func(i int) { msgs = append(msgs, d.message(i)) })
		default:
			// "topic" is bound to the path and has no place in the body.
			d.unknown(name, "")
		}
	})
	return msgs
}

func (d *publishDecoder) message(i int) *StoredMessage {
	m := &StoredMessage{Index: i}
	if d.peek() != '{' {
		d.invalidValue(fmt.Sprintf("messages[%d]", i), "message")
		return m
	}
	var seen uint
	d.object(func(name []byte) {
		switch string(name) {
		case "data":
			if d.once(&seen, 0, "data") && !d.null() {
				m.Data = d.bytes(i)
			}
		case "attributes":
			if d.once(&seen, 1, "attributes") && !d.null() {
				m.Attributes = d.attributes(i)
			}
		case "orderingKey", "ordering_key":
			if d.once(&seen, 2, "ordering_key") && !d.null() {
				m.OrderingKey = string(d.text("messages[%d].ordering_key", i))
			}
		case "messageId", "message_id":
			// Set by the service; what a publisher writes there is taken and ignored.
			if d.once(&seen, 3, "message_id") && !d.null() {
				d.text("messages[%d].message_id", i)
			}
		case "publishTime", "publish_time":
			if d.once(&seen, 4, "publish_time") && !d.null() {
				d.text("messages[%d].publish_time", i)
			}
		default:
			d.unknown(name, fmt.Sprintf("messages[%d]", i))
		}
	})
	return m
}

func (d *publishDecoder) attributes(i int) map[string]string {
	if d.peek() != '{' {
		d.invalidValue(fmt.Sprintf("messages[%d].attributes", i), "map")
		return nil
	}
	var attrs map[string]string
	d.object(func(raw []byte) {
		name, ok := d.names[string(raw)]
		if !ok {
			name = string(raw)
			d.names[name] = name
		}
		value := string(d.text("messages[%d].attributes[0].value", i))
		if _, twice := attrs[name]; twice {
			d.fail(fmt.Sprintf("Repeated map key: %q is already set.", name))
			return
		}
		if attrs == nil {
			attrs = make(map[string]string, 8)
		}
		attrs[name] = value
	})
	return attrs
}

// text takes a string value. format and i name the field only if it is something else.
func (d *publishDecoder) text(format string, i int) []byte { return d.value(format, i, "TYPE_STRING") }

func (d *publishDecoder) value(format string, i int, kind string) []byte {
	if d.peek() != '"' {
		d.invalidValue(fmt.Sprintf(format, i), kind)
		return nil
	}
	return d.str()
}

func (d *publishDecoder) bytes(i int) []byte {
	s := d.value("messages[%d].data", i, "TYPE_BYTES")
	if d.err != nil {
		return nil
	}
	data, ok := decodeBase64(s)
	if !ok {
		d.fail(fmt.Sprintf("Invalid value at 'messages[%d].data' (TYPE_BYTES), Base64 decoding failed", i))
	}
	return data
}

// decodeBase64 accepts the standard and the URL alphabet, but not a mix, and padding either in full
// or not at all.
func decodeBase64(s []byte) ([]byte, bool) {
	if len(s) == 0 {
		return nil, true
	}
	enc := base64.StdEncoding
	if bytes.ContainsAny(s, "-_") {
		enc = base64.URLEncoding
	}
	if len(s)%4 != 0 {
		enc = enc.WithPadding(base64.NoPadding)
	}
	out := make([]byte, decodedLen(s))
	n, err := enc.Decode(out, s)
	// The standard decoder skips line ends: then less comes out than the length says.
	return out, err == nil && n == len(out)
}

// decodedLen is the exact length of what s decodes to. Enc.DecodedLen rounds up to three, and the
// rest would stay with the stored message.
func decodedLen(s []byte) int {
	n := len(s)
	for range 2 {
		if n > 0 && s[n-1] == '=' {
			n--
		}
	}
	return n * 6 / 8
}

// once reports whether field bit comes for the first time, and fails if not.
func (d *publishDecoder) once(seen *uint, bit int, name string) bool {
	if *seen&(1<<bit) != 0 {
		d.fail("Duplicate name: " + name)
		return false
	}
	*seen |= 1 << bit
	return true
}

func (d *publishDecoder) unknown(name []byte, at string) {
	if d.err != nil {
		return
	}
	text := fmt.Sprintf("Unknown name %q: Cannot find field.", name)
	if at != "" {
		text = fmt.Sprintf("Unknown name %q at '%s': Cannot find field.", name, at)
	}
	d.err = invalidPayload(text)
	d.err.field(at)
}

func (d *publishDecoder) invalidValue(field, kind string) {
	if d.err == nil {
		d.err = invalid("Invalid value at '%s' (%s)", field, kind)
		d.err.field(field)
	}
}
