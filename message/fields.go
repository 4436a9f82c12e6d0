package message

import "unicode/utf8"

// The keys that Decode reads, in the order of the checks of their types.
const (
	fieldVersion = iota
	fieldID
	fieldSourceID
	fieldReceivedAt
	fieldSize
	fieldTenantID
	fieldContentType
	fieldDedupeKey
	fieldReplayID
	fieldIdempotencyKey
	fieldHeaders
	fieldSHA256
	fieldBody
	fieldClaim
	fieldCount
)

// fieldOf returns the field that a key names, or -1.
func fieldOf(key []byte) int {
	switch string(key) {
	case "v":
		return fieldVersion
	case "id":
		return fieldID
	case "source_id":
		return fieldSourceID
	case "received_at":
		return fieldReceivedAt
	case "size":
		return fieldSize
	case "tenant_id":
		return fieldTenantID
	case "content_type":
		return fieldContentType
	case "dedupe_key":
		return fieldDedupeKey
	case "replay_id":
		return fieldReplayID
	case "idempotency_key":
		return fieldIdempotencyKey
	case "headers":
		return fieldHeaders
	case "sha256":
		return fieldSHA256
	case "body_base64":
		return fieldBody
	case "claim":
		return fieldClaim
	}
	return -1
}

// longestKey is longer than any key that Decode reads can be, escaped to the last letter.
const longestKey = 6 * len("idempotency_key")

// field returns the field that the key k names, or -1.
func (s *scanner) field(k value) int {
	switch {
	case !k.escaped:
		return fieldOf(s.in[k.start:k.end])
	case k.end-k.start > longestKey:
		return -1
	}
	var buf [longestKey]byte
	return fieldOf(appendText(buf[:0], s.in, k))
}

// scan applies the first rule and returns where the fields are: of each key the last one.
func scan(raw []byte) (fields [fieldCount]value, err error) {
	if !utf8.Valid(raw) {
		return fields, refuse(CodeInvalidJSON, "not valid UTF-8 (byte %d of %d)", invalidAt(raw)+1, len(raw))
	}
	s := scanner{in: raw}
	isObject, ok := s.message(&fields)
	switch {
	case !ok:
		return fields, refuse(CodeInvalidJSON, "%s (byte %d of %d)", s.err, s.pos+1, len(raw))
	case !isObject:
		return fields, refuse(CodeNotAnObject, "the message is JSON, but not an object")
	}
	return fields, nil
}

// message reads the whole input. What is no object is read too, to tell it from what is no JSON.
func (s *scanner) message(fields *[fieldCount]value) (isObject, ok bool) {
	if s.next() != '{' {
		_, ok = s.value(0)
		return false, ok && s.end()
	}
	for more := s.open(); more; {
		var k, v value
		if k, v, more, ok = s.member(1); !ok {
			return true, false
		}
		if f := s.field(k); f >= 0 {
			fields[f] = v
		}
	}
	return true, s.end()
}
