package localsqs

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// jsonReader reads one JSON document from front to back. The reasons not to use encoding/json: it
// matches member names in any case, takes the last of two equal names, and turns bytes that are not
// UTF-8 and half surrogate pairs into U+FFFD, so that a client's mistake would be stored as if it
// were sound.
//
// The first error sticks; after it every method does nothing and returns zero.
type jsonReader struct {
	b   []byte
	i   int
	err error
}

var errDepth = errors.New("nested too deeply")

// maxDepth is far above what any request nests (five) and far below what the stack can take.
const maxDepth = 64

func (r *jsonReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: %w", r.i, fmt.Errorf(format, args...))
	}
}

func (r *jsonReader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end or after an error.
func (r *jsonReader) peek() byte {
	if r.err != nil {
		return 0
	}
	r.space()
	if r.i >= len(r.b) {
		return 0
	}
	return r.b[r.i]
}

func (r *jsonReader) want(c byte) bool {
	if r.peek() != c || r.err != nil {
		r.fail("want %q", c)
		return false
	}
	r.i++
	return true
}

// end fails unless nothing but white space is left.
func (r *jsonReader) end() {
	if r.err == nil {
		if r.space(); r.i != len(r.b) {
			r.fail("something after the document")
		}
	}
}

// object calls member for each name; member reads the value. Equal names are an error.
func (r *jsonReader) object(member func(name string)) {
	if !r.want('{') {
		return
	}
	if r.peek() == '}' {
		r.i++
		return
	}
	var few [8]string
	seen := few[:0]
	for r.err == nil {
		name := r.string()
		for _, s := range seen {
			if s == name {
				r.fail("member %q twice", name)
			}
		}
		// Bounded: a hostile document with very many names would make this quadratic.
		if len(seen) < 256 {
			seen = append(seen, name)
		}
		if !r.want(':') {
			return
		}
		member(name)
		switch r.peek() {
		case ',':
			r.i++
		case '}':
			r.i++
			return
		default:
			r.fail("want ',' or '}'")
		}
	}
}

// array calls element for each element; element reads it.
func (r *jsonReader) array(element func()) {
	if !r.want('[') {
		return
	}
	if r.peek() == ']' {
		r.i++
		return
	}
	for r.err == nil {
		element()
		switch r.peek() {
		case ',':
			r.i++
		case ']':
			r.i++
			return
		default:
			r.fail("want ',' or ']'")
		}
	}
}

// null reports whether the value is null, and consumes it if so. A null member is an absent one.
func (r *jsonReader) null() bool {
	if r.peek() == 'n' {
		r.literal("null")
		return r.err == nil
	}
	return false
}

func (r *jsonReader) literal(word string) {
	if r.err != nil {
		return
	}
	if len(r.b)-r.i < len(word) || string(r.b[r.i:r.i+len(word)]) != word {
		r.fail("want %s", word)
		return
	}
	r.i += len(word)
}

// bool reads true or false.
func (r *jsonReader) bool() bool {
	if r.peek() == 't' {
		r.literal("true")
		return r.err == nil
	}
	r.peek()
	r.literal("false")
	return false
}

// number consumes a number and returns its text.
func (r *jsonReader) number() string {
	r.peek()
	start := r.i
	digits := func() bool {
		from := r.i
		for r.i < len(r.b) && '0' <= r.b[r.i] && r.b[r.i] <= '9' {
			r.i++
		}
		return r.i > from
	}
	at := func(set string) bool {
		for k := range len(set) {
			if r.i < len(r.b) && r.b[r.i] == set[k] {
				r.i++
				return true
			}
		}
		return false
	}
	if r.err != nil {
		return ""
	}
	at("-")
	if zero := r.i; !digits() || r.b[zero] == '0' && r.i > zero+1 {
		r.fail("bad number")
		return ""
	}
	if at(".") && !digits() {
		r.fail("bad number")
		return ""
	}
	if at("eE") {
		at("+-")
		if !digits() {
			r.fail("bad number")
			return ""
		}
	}
	return string(r.b[start:r.i])
}

// int reads an integer.
func (r *jsonReader) int() int {
	n, err := strconv.Atoi(r.number())
	if err != nil {
		r.fail("want an integer")
	}
	return n
}

// string reads a string. It copies once; a string without escapes needs no scratch.
func (r *jsonReader) string() string {
	if !r.want('"') {
		return ""
	}
	// First pass: find the end, and how long the result can be at most.
	start, escaped := r.i, false
	for r.i < len(r.b) && r.b[r.i] != '"' {
		if r.b[r.i] == '\\' {
			escaped = true
			r.i++
		} else if r.b[r.i] < 0x20 {
			r.fail("control character in a string")
			return ""
		}
		r.i++
	}
	if r.i >= len(r.b) {
		r.i = len(r.b)
		r.fail("string without end")
		return ""
	}
	raw := r.b[start:r.i]
	r.i++
	if !utf8.Valid(raw) {
		r.fail("string is not UTF-8")
		return ""
	}
	if !escaped {
		return string(raw)
	}
	return r.unescape(raw)
}

func (r *jsonReader) unescape(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			j := i + 1
			for j < len(raw) && raw[j] != '\\' {
				j++
			}
			out = append(out, raw[i:j]...)
			i = j
			continue
		}
		c := raw[i+1] // string() has made sure of it
		i += 2
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			u, ok := hex4(raw[i:])
			if !ok {
				r.fail("bad \\u escape")
				return ""
			}
			i += 4
			if utf16.IsSurrogate(u) {
				low, ok := rune(0), false
				if i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					low, ok = hex4(raw[i+2:])
				}
				full := utf16.DecodeRune(u, low)
				if !ok || full == utf8.RuneError {
					r.fail("half of a surrogate pair")
					return ""
				}
				u, i = full, i+6
			}
			out = utf8.AppendRune(out, u)
		default:
			r.fail("bad escape \\%c", c)
			return ""
		}
	}
	if cap(out)-len(out) > len(out)/8 {
		return string(out) // mostly escapes: don't keep the room they took
	}
	return unsafe.String(unsafe.SliceData(out), len(out)) // out is not used again
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var u rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			u = u<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			u = u<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			u = u<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return u, true
}

// skip reads any value and forgets it.
func (r *jsonReader) skip() { r.skipAt(0) }

func (r *jsonReader) skipAt(depth int) {
	if depth > maxDepth {
		r.fail("%w", errDepth)
		return
	}
	switch c := r.peek(); {
	case c == '{':
		r.object(func(string) { r.skipAt(depth + 1) })
	case c == '[':
		r.array(func() { r.skipAt(depth + 1) })
	case c == '"':
		r.string()
	case c == 't' || c == 'f':
		r.bool()
	case c == 'n':
		r.null()
	default:
		r.number()
	}
}
