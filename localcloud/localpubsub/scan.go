package localpubsub

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep values may nest; the protobuf JSON parser's own limit is 100.
const maxDepth = 100

// scanner reads JSON strictly by RFC 8259. The standard decoder won't do for publish requests: it
// replaces text that isn't UTF-8 with U+FFFD, lets the last of two equal names win, and copies
// every base64 string before it is decoded.
//
// The first error sticks in err; after it every method returns zero values and value positions
// mean nothing.
type scanner struct {
	b   []byte // UTF-8 throughout, checked by the caller
	i   int    // next byte
	err *apiError
}

func (s *scanner) fail(why string) {
	if s.err == nil {
		s.err = invalidPayload(why + " (at byte " + strconv.Itoa(s.i) + ")")
	}
}

// peek skips white space and returns the next byte without taking it; 0 at the end or after an error.
func (s *scanner) peek() byte {
	if s.err != nil {
		return 0
	}
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) bool {
	if s.peek() != c || s.err != nil {
		s.fail("expected " + strconv.QuoteRune(rune(c)))
		return false
	}
	s.i++
	return true
}

// end checks that nothing but white space is left.
func (s *scanner) end() {
	if s.peek(); s.err == nil && s.i < len(s.b) {
		s.fail("Parsing terminated before end of input.")
	}
}

// null takes the literal null if it is next.
func (s *scanner) null() bool {
	if s.peek() == 'n' && bytes.HasPrefix(s.b[s.i:], []byte("null")) {
		s.i += 4
		return true
	}
	return false
}

// object calls member for each member, with its name; member has to take the value. The name is
// only valid until member returns.
func (s *scanner) object(member func(name []byte)) {
	s.list('{', '}', func(int) {
		name := s.str()
		if s.expect(':') {
			member(name)
		}
	})
}

// array calls element for each element, with its position; element has to take the value.
func (s *scanner) array(element func(i int)) { s.list('[', ']', element) }

func (s *scanner) list(open, end byte, item func(i int)) {
	if !s.expect(open) {
		return
	}
	if s.peek() == end {
		s.i++
		return
	}
	for n := 0; s.err == nil; n++ {
		item(n)
		switch c := s.peek(); {
		case s.err != nil:
		case c == ',':
			s.i++
		case c == end:
			s.i++
			return
		default:
			s.fail("expected ',' or " + strconv.QuoteRune(rune(end)))
		}
	}
}

// str takes a string. The result is a part of the input if the string has no escapes, and fresh
// memory otherwise.
func (s *scanner) str() []byte {
	if !s.expect('"') {
		return nil
	}
	n := bytes.IndexByte(s.b[s.i:], '"')
	if n < 0 {
		s.fail("string without end")
		return nil
	}
	raw := s.b[s.i : s.i+n]
	for _, c := range raw {
		if c == '\\' || c < 0x20 {
			return s.escaped()
		}
	}
	s.i += n + 1
	return raw
}

func (s *scanner) escaped() []byte {
	var out []byte
	for s.i < len(s.b) {
		c := s.b[s.i]
		switch {
		case c == '"':
			s.i++
			if out == nil {
				out = []byte{}
			}
			return out
		case c < 0x20:
			s.fail("control character in string")
			return nil
		case c != '\\':
			out = append(out, c)
			s.i++
		default:
			s.i++
			out = s.escape(out)
			if s.err != nil {
				return nil
			}
		}
	}
	s.fail("string without end")
	return nil
}

// escape takes what follows a backslash.
func (s *scanner) escape(out []byte) []byte {
	if s.i == len(s.b) {
		s.fail("string without end")
		return nil
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/':
		return append(out, c)
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		r := s.hex4()
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if bytes.HasPrefix(s.b[s.i:], []byte(`\u`)) {
				s.i += 2
				low = s.hex4()
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				s.fail("half a surrogate pair")
			}
		}
		return utf8.AppendRune(out, r)
	}
	s.fail("invalid escape")
	return nil
}

func (s *scanner) hex4() rune {
	if s.i+4 > len(s.b) {
		s.fail("invalid \\u escape")
		return 0
	}
	// ParseUint would take a sign or an underscore only with base 0.
	v, err := strconv.ParseUint(string(s.b[s.i:s.i+4]), 16, 16)
	if err != nil {
		s.fail("invalid \\u escape")
		return 0
	}
	s.i += 4
	return rune(v)
}

// skip takes any value and returns its text.
func (s *scanner) skip(depth int) []byte {
	c := s.peek() // skips white space, so the text begins at the value
	start := s.i
	switch {
	case s.err != nil:
	case depth > maxDepth:
		s.fail("nested too deeply")
	case c == '{':
		s.object(func([]byte) { s.skip(depth + 1) })
	case c == '[':
		s.array(func(int) { s.skip(depth + 1) })
	case c == '"':
		s.str()
	default:
		s.literal()
	}
	if s.err != nil {
		return nil
	}
	return s.b[start:s.i]
}

// literal takes true, false, null or a number.
func (s *scanner) literal() {
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			s.i += len(word)
			return
		}
	}
	s.number()
}

func (s *scanner) number() {
	s.take("-")
	if !s.take("0") && !s.digits() {
		s.fail("expected a value")
		return
	}
	if s.take(".") && !s.digits() || s.take("eE") && (s.take("+-") || true) && !s.digits() {
		s.fail("invalid number")
	}
}

// take takes one byte if it is one of set.
func (s *scanner) take(set string) bool {
	if s.i < len(s.b) && bytes.IndexByte([]byte(set), s.b[s.i]) >= 0 {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.i
	for s.take("0123456789") {
	}
	return s.i > start
}
