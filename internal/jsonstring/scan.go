package jsonstring

import "math/bits"

// next returns the index of the first byte of s, from i, that needs an escape, or len(s). It looks at eight
// bytes at a time: nearly all of what is sent is base64, which needs none.
func next[S ~string | ~[]byte](s S, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if n := clean(load(s, i)); n < 8 {
			return i + n
		}
	}
	if len(s) >= 8 {
		// The last eight bytes once more, without those that have been seen. Zeros come in behind the
		// string's end, and a zero is what a scan stops at.
		return i + clean(load(s, len(s)-8)>>uint(8*(i+8-len(s))))
	}
	for i < len(s) && escapes[s[i]] == 0 {
		i++
	}
	return i
}

// load returns s[i:i+8], the first byte lowest. The compiler makes one load of it, for strings too, which
// encoding/binary does not take.
func load[S ~string | ~[]byte](s S, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// clean returns how many of w's bytes, from the lowest, need no escape.
func clean(w uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	// Exclusive or with 2 moves the quote, 0x22, next to what is below a space and a space out of the way:
	// both kinds are then below 0x21. A byte's high bit ends up set where the subtraction went below zero
	// and the byte had none before. Borrows only ever spoil bytes above the first true hit, and the first
	// is all that counts.
	hit := (w ^ 2*ones) - 0x21*ones
	hit |= (w ^ '\\'*ones) - ones
	return bits.TrailingZeros64(hit&^w&highs) / 8
}
