package message

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"sync"
)

// pieceChars is how many characters of base64 are decoded at a time; a multiple of 4.
const pieceChars = 4096

// strictBase64 refuses what is set after the last byte. Like every encoding of its package it skips
// CR and LF, which nextPiece therefore has to refuse.
var strictBase64 = base64.StdEncoding.Strict()

// bodyChecker decodes a body in pieces, to learn its length and digest without keeping it.
type bodyChecker struct {
	digest hash.Hash
	sum    [sha256.Size]byte
	chars  [pieceChars]byte
	bytes  [pieceChars / 4 * 3]byte
}

var checkers = sync.Pool{New: func() any { return &bodyChecker{digest: sha256.New()} }}

// read returns the length of the body that the text v of in holds, false if it is not base64, and
// computes its digest if wanted.
func (c *bodyChecker) read(in []byte, v value, digest bool) (size int64, ok bool) {
	c.digest.Reset()
	rest := in[v.start:v.end]
	for len(rest) > 0 {
		var piece []byte
		if piece, rest, ok = nextPiece(rest, v.escaped, &c.chars); !ok {
			return 0, false
		}
		if len(rest) > 0 && piece[len(piece)-1] == '=' {
			return 0, false // padding that nothing ends with
		}
		n, err := strictBase64.Decode(c.bytes[:], piece)
		if err != nil {
			return 0, false
		}
		size += int64(n)
		if digest {
			c.digest.Write(c.bytes[:n])
		}
	}
	return size, true
}

// matches reports whether the body that was read last has this SHA-256, in lowercase hexadecimal.
func (c *bodyChecker) matches(want string) bool {
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], c.digest.Sum(c.sum[:0]))
	return string(digits[:]) == want
}

// nextPiece returns the next characters of a JSON string, pieceChars of them unless it ends before,
// and the rest of the string. Without escapes the piece is part of the input, else it is in buf. It
// returns false for an escape that spells what is not in base64's alphabet.
func nextPiece(in []byte, escaped bool, buf *[pieceChars]byte) (piece, rest []byte, ok bool) {
	if !escaped {
		n := min(len(in), pieceChars)
		return in[:n], in[n:], true
	}
	n := 0
	for n < pieceChars && len(in) > 0 {
		c, width := in[0], 1
		if c == '\\' {
			r, w := unescape(in)
			if r < ' ' || r > '~' {
				return nil, nil, false
			}
			c, width = byte(r), w
		}
		buf[n] = c
		n, in = n+1, in[width:]
	}
	return buf[:n], in, true
}

// AppendBody appends the body to dst; nothing when the message holds a claim.
func (d *Decoded) AppendBody(dst []byte) []byte {
	if !d.body.escaped {
		dst, _ = strictBase64.AppendDecode(dst, d.Raw[d.body.start:d.body.end])
		return dst
	}
	dst, _ = strictBase64.AppendDecode(dst, appendText(nil, d.Raw, d.body))
	return dst
}
