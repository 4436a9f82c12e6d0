package claim

import (
	"encoding/binary"
	"errors"
	"time"
)

// ID names one claim: 48 bits of Unix milliseconds, 64 bits of entropy and 16 bits of the claim's
// position in its pack, big-endian. Its text is a canonical ULID. An ID is comparable, and IDs
// sort by time as bytes and as text alike.
type ID [16]byte

const (
	// IDLen is the length of an ID's text.
	IDLen = 26
	// MaxMillis is the latest time that fits an ID, in Unix milliseconds: 2^48-1.
	MaxMillis = 1<<48 - 1
	// MaxPosition is the last position that fits an ID's 16 bits.
	MaxPosition = 1<<16 - 1
)

// alphabet is Crockford's base32: no I, L, O or U.
const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// digits is the inverse of alphabet; noDigit marks bytes outside of it. Lowercase letters and
// Crockford's lookalikes (I, L, O) are outside on purpose: a claim has one spelling, because the
// spelling is also its object key and the name of its ZIP entry.
var digits = func() (d [256]byte) {
	for i := range d {
		d[i] = noDigit
	}
	for i := range len(alphabet) {
		d[alphabet[i]] = byte(i)
	}
	return d
}()

const noDigit = 0xff

var errID = errors.New("claim: id is not a canonical ULID (26 characters of uppercase Crockford base32, the first 0 to 7)")

// PackID returns the ID of the pack made at ms, with entropy to tell it from others of the same
// millisecond. Only the low 48 bits of ms count; callers keep it within 0 and MaxMillis.
func PackID(ms int64, entropy [8]byte) ID {
	var id ID
	id[0], id[1] = byte(ms>>40), byte(ms>>32)
	binary.BigEndian.PutUint32(id[2:], uint32(ms))
	copy(id[6:14], entropy[:])
	return id
}

// ParseID reads the canonical text of an ID. Anything else is an error: lowercase, lookalike
// letters, white space, another length, or a first character above 7 (more than 128 bits).
func ParseID(s string) (ID, error) {
	if len(s) != IDLen || s[0] > '7' {
		return ID{}, errID
	}
	// 26 characters carry 130 bits; the first character's top two are zero as checked above.
	var hi, lo uint64
	for i := range len(s) {
		d := digits[s[i]]
		if d == noDigit {
			return ID{}, errID
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(d)
	}
	var id ID
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, nil
}

// String returns the canonical text, 26 characters.
func (id ID) String() string {
	return string(id.AppendTo(make([]byte, 0, IDLen)))
}

// AppendTo appends the canonical text, 26 characters, to dst.
func (id ID) AppendTo(dst []byte) []byte {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var text [IDLen]byte
	for i := IDLen - 1; i >= 0; i-- {
		text[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(dst, text[:]...)
}

// Pack returns the ID of the pack that holds the claim: the same ID with position 0.
func (id ID) Pack() ID {
	id[14], id[15] = 0, 0
	return id
}

// Position returns the claim's place in its pack, 0 to MaxPosition.
func (id ID) Position() int {
	return int(binary.BigEndian.Uint16(id[14:]))
}

// At returns the ID of the claim at pos of the same pack. It panics if pos is below 0 or above
// MaxPosition, because a wrapped position would name another hook's body.
func (id ID) At(pos int) ID {
	if pos < 0 || pos > MaxPosition {
		panic("claim: position does not fit 16 bits")
	}
	binary.BigEndian.PutUint16(id[14:], uint16(pos))
	return id
}

// Time returns when the pack was made, in UTC.
func (id ID) Time() time.Time {
	return time.UnixMilli(id.millis()).UTC()
}

func (id ID) millis() int64 {
	return int64(id[0])<<40 | int64(id[1])<<32 | int64(binary.BigEndian.Uint32(id[2:6]))
}
