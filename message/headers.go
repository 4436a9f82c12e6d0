package message

// Headers returns the message's headers, nil when it has none. Each call makes a new map.
func (d *Decoded) Headers() map[string]string {
	if d.headers.kind != object {
		return nil
	}
	var headers map[string]string
	eachHeader(d.Raw, d.headers, func(name, v value) {
		if headers == nil {
			headers = map[string]string{}
		}
		headers[textOf(d.Raw, name)] = textOf(d.Raw, v)
	})
	return headers
}

// headersOfStrings reports whether v is what headers may be: an object of strings, or none. A value
// that is no string counts even when a repetition of its name has one: readers that decode into a map
// of strings stop at it.
func headersOfStrings(in []byte, v value) bool {
	switch v.kind {
	case absent, null:
		return true
	case object:
	default:
		return false
	}
	sound := true
	eachHeader(in, v, func(_, v value) { sound = sound && v.kind == text })
	return sound
}

// eachHeader reads once more the headers of a message that has been scanned.
func eachHeader(in []byte, headers value, see func(name, v value)) {
	s := scanner{in: in[:headers.end], pos: headers.start}
	for more := s.open(); more; {
		var name, v value
		name, v, more, _ = s.member(2)
		see(name, v)
	}
}
