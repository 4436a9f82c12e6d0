package message

import (
	"strings"

	"github.com/ankusa-connect/ankusa-connect/internal/jsonstring"
)

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
	for {
		i := nonCharacter(s)
		if i < 0 {
			return jsonstring.AppendInside(dst, s)
		}
		dst = jsonstring.AppendInside(dst, s[:i])
		// The last bytes are BE and BF, the last digits e and f.
		dst = append(dst, '\\', 'u', 'f', 'f', 'f', s[i+2]-0xBE+'e')
		s = s[i+3:]
	}
}

// escapedLen is the number of bytes that appendEscaped appends.
func escapedLen(s string) int {
	n := jsonstring.LenInside(s)
	for i := nonCharacter(s); i >= 0; i = nonCharacter(s) {
		n += 3 // six bytes for three
		s = s[i+3:]
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

// nonCharacter returns the index of the first U+FFFE or U+FFFF, EF BF BE and EF BF BF, or -1.
func nonCharacter(s string) int {
	from := strings.IndexByte(s, 0xEF) // in nearly no string, and quicker than looking for two bytes
	for from >= 0 {
		i := strings.Index(s[from:], "\xEF\xBF")
		if i < 0 {
			return -1
		}
		from += i
		if from+2 < len(s) && s[from+2]|1 == 0xBF {
			return from
		}
		from += 2
	}
	return -1
}
