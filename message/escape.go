package message

// special marks the bytes that appendEscaped has to look at: those that JSON wants escaped, and 0xEF,
// which may begin U+FFFE or U+FFFF.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'], t[0xEF] = true, true, true
	return t
}()

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Only what must be escaped is, always in the shortest form,
// so a string has one spelling. U+FFFE and U+FFFF must be too: JSON takes them raw, but SQS does not.
// s must be UTF-8.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

// appendNullable is appendString with null for the empty string.
func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}

// appendEscaped appends the inside of a JSON string.
func appendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		if !special[s[i]] {
			continue
		}
		width := 1
		if s[i] == 0xEF {
			if !isNonCharacter(s[i:]) {
				continue
			}
			width = 3
		}
		dst = append(dst, s[start:i]...)
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case 0xEF:
			dst = append(dst, `\uff`...)
			dst = append(dst, 'f', hexDigits[s[i+2]-0xBE+0xE])
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
		}
		i += width - 1
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// escapedLen is the number of bytes that appendEscaped appends.
func escapedLen(s string) int {
	n := len(s)
	for i := 0; i < len(s); i++ {
		if !special[s[i]] {
			continue
		}
		switch c := s[i]; c {
		case '"', '\\', '\b', '\f', '\n', '\r', '\t':
			n++ // two bytes for one
		case 0xEF:
			if isNonCharacter(s[i:]) {
				n += 3 // six bytes for three
			}
		default:
			n += 5 // six bytes for one
		}
	}
	return n
}

func stringLen(s string) int { return 2 + escapedLen(s) }

func nullableLen(s string) int {
	if s == "" {
		return len("null")
	}
	return stringLen(s)
}

// isNonCharacter reports whether s, which begins with 0xEF, begins with U+FFFE or U+FFFF.
func isNonCharacter(s string) bool {
	return len(s) >= 3 && s[1] == 0xBF && (s[2] == 0xBE || s[2] == 0xBF)
}
