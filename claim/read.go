package claim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// Range is where a claim's bytes lie in its pack.
type Range struct {
	Offset int64
	Length int64
}

// ErrNoClaim means that the pack is sound and holds fewer claims than the position asks for.
var ErrNoClaim = errors.New("claim: the pack has no claim at this position")

var errPack = errors.New("claim: not a pack: it does not begin with a stored entry index.bin")

// IndexPrefixLen returns how much of a pack's start has to be read to locate the claim at pos: up
// to the end of its row of the index. pos is an ID's Position.
func IndexPrefixLen(pos int) int64 {
	return int64(localHeaderLen + len(indexName) + rowLen*(pos+1))
}

// Locate finds the claim at pos, given the first IndexPrefixLen(pos) bytes of its pack; more is
// fine, less is an error unless the pack itself is shorter. It believes nothing: what lies
// before pos's row must be the head of a pack, and a row that points into the index or behind the
// largest pack is an error. Whether the range lies within the pack only the reader of the range
// can tell.
func Locate(prefix []byte, pos int) (Range, error) {
	if pos < 0 || pos >= MaxClaims {
		return Range{}, ErrNoClaim
	}
	const head = localHeaderLen + len(indexName)
	if len(prefix) < head {
		return Range{}, errPack
	}
	le := binary.LittleEndian
	size := le.Uint32(prefix[22:])
	switch {
	case le.Uint32(prefix) != localSignature,
		le.Uint16(prefix[6:]) != 0,     // flags: no encryption, no data descriptor
		le.Uint16(prefix[8:]) != 0,     // stored
		le.Uint32(prefix[18:]) != size, // compressed is uncompressed
		le.Uint16(prefix[26:]) != uint16(len(indexName)),
		le.Uint16(prefix[28:]) != 0, // no extra field, else the rows are not where they should be
		string(prefix[localHeaderLen:head]) != indexName,
		size == 0, size%rowLen != 0, size/rowLen > MaxClaims:
		return Range{}, errPack
	}
	if pos >= int(size/rowLen) {
		return Range{}, ErrNoClaim
	}
	rowAt := head + rowLen*pos
	if len(prefix) < rowAt+rowLen {
		return Range{}, errPack
	}
	be := binary.BigEndian
	r := Range{
		Offset: int64(be.Uint32(prefix[rowAt:])),
		Length: int64(be.Uint32(prefix[rowAt+4:])),
	}
	// Each claim comes behind the index, its own header and those of the claims before it.
	least := int64(head) + int64(size) + int64(pos+1)*(localHeaderLen+IDLen)
	if r.Offset < least || r.Offset+r.Length > MaxPackBytes {
		return Range{}, errors.New("claim: the pack's index points outside of the pack")
	}
	return r, nil
}

// RangeReader reads parts of stored objects. Every Store of this module is one; to send, it need
// not have the right to.
type RangeReader interface {
	// ReadRange returns length bytes of the object at key, from offset on, and fewer only if the
	// object ends before. It must not reserve memory for length before it knows that there is so
	// much to read: the number may come from a hostile index. An object that does not exist is a
	// *classify.Error with code claim_not_found.
	ReadRange(ctx context.Context, key string, offset, length int64) ([]byte, error)
}

// Codes of errors of Redeem and of RangeReader.
const (
	CodeNotFound    = "claim_not_found" // no such object, or no such position in the pack
	CodeInvalidPack = "invalid_pack"    // the object is no pack
	CodeIntegrity   = "integrity"       // the bytes are not those that the message names
)

// Redeem fetches a claim as the gateway does, by two ranged reads, and checks it against what the
// message says: its size in bytes (negative when unknown) and its SHA-256 in lowercase hex. The
// size is compared with the index before the body is read, so a hostile index cannot make it read
// more than the message announces.
//
// Errors are *classify.Error: the store's own, or permanent with one of the codes above.
func Redeem(ctx context.Context, src RangeReader, ref Ref, sha256Hex string, size int64) ([]byte, error) {
	key, pos := ref.Key(), ref.ID.Position()
	prefix, err := src.ReadRange(ctx, key, 0, IndexPrefixLen(pos))
	if err != nil {
		return nil, err
	}
	r, err := Locate(prefix, pos)
	if errors.Is(err, ErrNoClaim) {
		return nil, classify.Permanentf(Service, CodeNotFound, "%s: %w", ref, err)
	}
	if err != nil {
		return nil, classify.Permanentf(Service, CodeInvalidPack, "%s: %w", ref, err)
	}
	if size >= 0 && r.Length != size {
		return nil, classify.Permanentf(Service, CodeIntegrity, "%s: the pack holds %d bytes, the message says %d", ref, r.Length, size)
	}
	var body []byte
	if r.Length > 0 { // an empty range cannot be asked for over HTTP
		if body, err = src.ReadRange(ctx, key, r.Offset, r.Length); err != nil {
			return nil, err
		}
	}
	if int64(len(body)) != r.Length {
		return nil, classify.Permanentf(Service, CodeInvalidPack, "%s: the pack ends after %d of the claim's %d bytes", ref, len(body), r.Length)
	}
	sum := sha256.Sum256(body)
	if got := hex.EncodeToString(sum[:]); got != sha256Hex {
		return nil, classify.Permanentf(Service, CodeIntegrity, "%s: the stored bytes have sha256 %s, the message says %s", ref, got, sha256Hex)
	}
	return body, nil
}

// ReadAtMost reads up to length bytes of r. It lets memory grow with what arrives, as
// RangeReader demands; it is for those who implement one.
func ReadAtMost(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	_, err := b.ReadFrom(io.LimitReader(r, length))
	return b.Bytes(), err
}
