package jsonstring

// Append appends s to dst as a JSON string, in quotes.
func Append[S ~string | ~[]byte](dst []byte, s S) []byte {
	i := next(s, 0)
	// The usual case at once: most strings are short, and growing three times costs as much as the scan.
	if at, end := len(dst), len(dst)+len(s)+len(`""`); i == len(s) && end <= cap(dst) {
		dst = dst[:end]
		dst[at] = '"'
		copy(dst[at+1:], s)
		dst[end-1] = '"'
		return dst
	}
	dst = append(dst, '"')
	dst = appendFrom(dst, s, i)
	return append(dst, '"')
}

// AppendInside is [Append] without the quotes.
func AppendInside[S ~string | ~[]byte](dst []byte, s S) []byte {
	return appendFrom(dst, s, next(s, 0))
}

// appendFrom appends the inside of s, whose first escape is at i.
func appendFrom[S ~string | ~[]byte](dst []byte, s S, i int) []byte {
	start := 0 // what is in front of it has been written
	for ; i < len(s); i = next(s, start) {
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, s[i])
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// Len returns how many bytes Append appends.
func Len[S ~string | ~[]byte](s S) int { return len(`""`) + LenInside(s) }

// LenInside returns how many bytes AppendInside appends.
func LenInside[S ~string | ~[]byte](s S) int {
	n := len(s)
	for i := next(s, 0); i < len(s); i = next(s, i+1) {
		if escapes[s[i]] == 'u' {
			n += len(`\u00xx`) - 1
		} else {
			n += len(`\x`) - 1
		}
	}
	return n
}

// escapes gives for each byte the letter that follows the backslash, 'u' for \u00xx, or 0 for a byte that
// stands for itself.
var escapes = func() (t [256]byte) {
	for c := range byte(0x20) {
		t[c] = 'u'
	}
	t['\b'], t['\f'], t['\n'], t['\r'], t['\t'] = 'b', 'f', 'n', 'r', 't'
	t['"'], t['\\'] = '"', '\\'
	return t
}()

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	e := escapes[c]
	if e == 'u' {
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
	return append(dst, '\\', e)
}
