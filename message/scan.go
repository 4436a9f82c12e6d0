package message

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest, the outermost included: encoding/json's limit.
const maxDepth = 10_000

// kind is what type of value a JSON text holds.
type kind uint8

const (
	absent kind = iota
	null
	boolean
	number // with a fraction or an exponent, or -0
	integer
	text
	array
	object
)

// value is one JSON value, by its place in the input.
type value struct {
	kind       kind
	escaped    bool // text only: holds at least one escape
	start, end int  // of text without its quotes
}

// scanner reads JSON (RFC 8259) that is known to be UTF-8. It looks at every byte once, keeps its
// nesting in a bit per level and allocates nothing, so no input makes it recurse, grow or run longer
// than its length. On failure a method returns false, and err and pos say what was wrong where.
type scanner struct {
	in  []byte
	pos int
	err string
	// objects has a bit for each open level: 1 for an object, 0 for an array.
	objects [(maxDepth + 63) / 64]uint64
}

func (s *scanner) fail(what string) bool {
	s.err = what
	return false
}

// next skips white space and returns the byte after it, 0 at the end (which no rule accepts).
func (s *scanner) next() byte {
	for ; s.pos < len(s.in); s.pos++ {
		switch c := s.in[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end accepts white space and the end of the input.
func (s *scanner) end() bool {
	if s.next(); s.pos < len(s.in) {
		return s.fail("something follows the value")
	}
	return true
}

// open enters the object that begins here and reports whether it has members.
func (s *scanner) open() bool {
	s.pos++
	if s.next() == '}' {
		s.pos++
		return false
	}
	return true
}

// member reads the next member of an object that is depth levels deep, itself included, and the comma
// or bracket after it; more reports which.
func (s *scanner) member(depth int) (k, v value, more, ok bool) {
	if k, ok = s.key(); !ok {
		return
	}
	if v, ok = s.value(depth); !ok {
		return
	}
	switch s.next() {
	case ',':
		more = true
	case '}':
	default:
		return k, v, false, s.fail(afterValue)
	}
	s.pos++
	return k, v, more, true
}

const afterValue = "a comma or the closing bracket must follow a value"

// key reads an object's key and the colon after it.
func (s *scanner) key() (v value, ok bool) {
	if s.next() != '"' {
		return v, s.fail("a key must be a string")
	}
	if v, ok = s.string(); !ok {
		return v, false
	}
	if s.next() != ':' {
		return v, s.fail("a colon must follow a key")
	}
	s.pos++
	return v, true
}

// value reads a value whose container is open levels deep.
func (s *scanner) value(open int) (v value, ok bool) {
	switch c := s.next(); c {
	case '"':
		return s.string()
	case '{', '[':
		v = value{kind: array, start: s.pos}
		if c == '{' {
			v.kind = object
		}
		ok = s.nested(open)
		v.end = s.pos
		return v, ok
	default:
		return s.scalar(c)
	}
}

// nested reads a whole array or object, with everything in it.
func (s *scanner) nested(open int) bool {
	depth := open
	for {
		// A value begins here.
		switch c := s.next(); c {
		case '"':
			if _, ok := s.string(); !ok {
				return false
			}
		case '{', '[':
			if depth == maxDepth {
				return s.fail("nested too deep")
			}
			word, bit := depth/64, uint64(1)<<(depth%64)
			depth++
			s.pos++
			if c == '[' {
				s.objects[word] &^= bit
				if s.next() != ']' {
					continue
				}
			} else {
				s.objects[word] |= bit
				if s.next() != '}' {
					if _, ok := s.key(); !ok {
						return false
					}
					continue
				}
			}
			s.pos++
			depth--
		default:
			if _, ok := s.scalar(c); !ok {
				return false
			}
		}
		// A value has ended: close what ends with it, up to a comma or the way out.
		for {
			if depth == open {
				return true
			}
			inObject := s.objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
			c := s.next()
			if c == ',' {
				s.pos++
				if inObject {
					if _, ok := s.key(); !ok {
						return false
					}
				}
				break
			}
			if inObject && c != '}' || !inObject && c != ']' {
				return s.fail(afterValue)
			}
			s.pos++
			depth--
		}
	}
}

// scalar reads a number or a literal, which begins with c.
func (s *scanner) scalar(c byte) (value, bool) {
	switch c {
	case 't':
		return s.literal("true", boolean)
	case 'f':
		return s.literal("false", boolean)
	case 'n':
		return s.literal("null", null)
	default:
		return s.number()
	}
}

func (s *scanner) literal(word string, k kind) (value, bool) {
	v := value{kind: k, start: s.pos, end: s.pos + len(word)}
	if v.end > len(s.in) || string(s.in[v.start:v.end]) != word {
		return v, s.fail("no value begins here")
	}
	s.pos = v.end
	return v, true
}

func (s *scanner) number() (value, bool) {
	v := value{kind: integer, start: s.pos}
	negative := s.skip('-')
	zero := s.pos < len(s.in) && s.in[s.pos] == '0'
	switch {
	case zero:
		s.pos++
	case s.digits() == 0:
		return v, s.fail("no value begins here")
	}
	if zero && negative {
		v.kind = number // a float to some readers, see the package comment
	}
	if s.skip('.') {
		v.kind = number
		if s.digits() == 0 {
			return v, s.fail("a number has no digits after its point")
		}
	}
	if s.skip('e') || s.skip('E') {
		v.kind = number
		if !s.skip('-') {
			s.skip('+')
		}
		if s.digits() == 0 {
			return v, s.fail("a number has no digits in its exponent")
		}
	}
	v.end = s.pos
	return v, true
}

func (s *scanner) skip(c byte) bool {
	if s.pos < len(s.in) && s.in[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.in) && '0' <= s.in[s.pos] && s.in[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

// string reads a string, which begins here.
func (s *scanner) string() (value, bool) {
	s.pos++
	v := value{kind: text, start: s.pos}
	for {
		s.plain()
		if s.pos == len(s.in) {
			return v, s.fail("a string has no end")
		}
		switch s.in[s.pos] {
		case '"':
			v.end = s.pos
			s.pos++
			return v, true
		case '\\':
			v.escaped = true
			if !s.escape() {
				return v, false
			}
		default:
			return v, s.fail("a control character in a string must be escaped")
		}
	}
}

// plain skips what a string may hold as it is, eight bytes at a time: nearly all of a message is one
// string, its body.
func (s *scanner) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	in, i := s.in, s.pos
	for ; i+8 <= len(in); i += 8 {
		w := binary.LittleEndian.Uint64(in[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The lowest top bit that is set marks the first byte below 0x20, or that is a quote or a
		// backslash; higher ones may be set in error, by a borrow.
		if hit := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & tops; hit != 0 {
			s.pos = i + bits.TrailingZeros64(hit)/8
			return
		}
	}
	for i < len(in) && in[i] >= 0x20 && in[i] != '"' && in[i] != '\\' {
		i++
	}
	s.pos = i
}

// escape reads one escape, or the two that spell one character.
func (s *scanner) escape() bool {
	r, n := unescape(s.in[s.pos:])
	switch {
	case n == 0:
		return s.fail("no such escape")
	case r == utf8.RuneError && utf16.IsSurrogate(hex4(s.in[s.pos+2:])):
		return s.fail("an escape is half a surrogate pair, which is no character")
	}
	s.pos += n
	return true
}

// unescape returns the character that an escape at the start of in spells and the escape's length; 0
// if there is none. Half a surrogate pair is utf8.RuneError.
func unescape(in []byte) (r rune, n int) {
	if len(in) < 2 {
		return 0, 0
	}
	switch in[1] {
	case '"', '\\', '/':
		return rune(in[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r = hex4(in[2:])
		switch {
		case r < 0:
			return 0, 0
		case !utf16.IsSurrogate(r):
			return r, 6
		case len(in) >= 12 && in[6] == '\\' && in[7] == 'u':
			return utf16.DecodeRune(r, hex4(in[8:])), 12
		}
		return utf8.RuneError, 6
	}
	return 0, 0
}

// hex4 returns the number that the first four bytes of in spell, or -1.
func hex4(in []byte) rune {
	if len(in) < 4 {
		return -1
	}
	var r rune
	for _, c := range in[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// appendText appends what the text v of in says.
func appendText(dst, in []byte, v value) []byte {
	rest := in[v.start:v.end]
	for i := 0; v.escaped && i < len(rest); {
		if rest[i] != '\\' {
			i++
			continue
		}
		r, n := unescape(rest[i:])
		dst = append(dst, rest[:i]...)
		dst = utf8.AppendRune(dst, r)
		rest, i = rest[i+n:], 0
	}
	return append(dst, rest...)
}

// textOf returns what the text v of in says, as a string of its own.
func textOf(in []byte, v value) string {
	if !v.escaped {
		return string(in[v.start:v.end])
	}
	return string(appendText(make([]byte, 0, v.end-v.start), in, v))
}

// intOf returns the integer v of in; false when it does not fit 64 bits.
func intOf(in []byte, v value) (int64, bool) {
	digits := in[v.start:v.end]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	var n uint64
	for _, c := range digits {
		if n > 1<<63/10 { // the next step would pass 64 bits
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case negative && n <= 1<<63:
		return int64(-n), true
	case !negative && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}
