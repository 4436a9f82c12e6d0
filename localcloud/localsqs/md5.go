package localsqs

import (
	"crypto/md5" //nolint:gosec // the protocol's checksum, not a safeguard
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"unsafe"
)

// bodyBytes is s without a copy. The result must not be written to.
func bodyBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func md5Hex(s string) string {
	sum := md5.Sum(bodyBytes(s))
	return hex.EncodeToString(sum[:])
}

// attributesMD5 is the checksum that "Calculating the MD5 message digest for message attributes" in
// the developer guide describes: sorted by name, each of name, data type and value behind its length
// as a big-endian uint32, and before the value one byte, 1 for String and Number, 2 for Binary.
// Empty without attributes.
func attributesMD5(attributes []attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(attributes), func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	h := md5.New()
	var length [4]byte
	write := func(s string) {
		binary.BigEndian.PutUint32(length[:], uint32(len(s)))
		h.Write(length[:])
		h.Write(bodyBytes(s))
	}
	for i := range sorted {
		a := &sorted[i]
		write(a.name)
		write(a.dataType)
		kind := byte(1)
		if a.base() == "Binary" {
			kind = 2
		}
		h.Write([]byte{kind})
		write(a.value)
	}
	return hex.EncodeToString(h.Sum(nil))
}
