package sqs

import "unicode/utf8"

// checkText finds the first character that SQS does not take in a body or attribute value. It takes
// #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF (API reference, SendMessage), in UTF-8.
// What is found is named by code point and position, never quoted. Its subject comes in two parts,
// so that nobody joins them for the many that are sound.
func checkText[T string | []byte](what, name string, s T) error {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return invalid("%s holds %U at byte %d, which SQS does not take", what+name, rune(c), i)
			}
			i++
			continue
		}
		r, n := decodeRune(s[i:min(len(s), i+utf8.UTFMax)])
		switch {
		case r == utf8.RuneError && n <= 1:
			return invalid("%s is not UTF-8 at byte %d", what+name, i)
		case r == 0xFFFE || r == 0xFFFF:
			return invalid("%s holds %U at byte %d, which SQS does not take", what+name, r, i)
		}
		i += n
	}
	return nil
}

func decodeRune[T string | []byte](s T) (rune, int) {
	switch s := any(s).(type) {
	case string:
		return utf8.DecodeRuneInString(s)
	case []byte:
		return utf8.DecodeRune(s)
	}
	panic("unreachable")
}
