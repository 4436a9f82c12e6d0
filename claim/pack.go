package claim

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"unicode/utf8"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/jsonstring"
)

// Service is the name that errors of this package bear.
const Service = "claim"

// ContentType is what a pack is: a plain ZIP.
const ContentType = "application/zip"

const (
	indexName    = "index.bin"
	manifestName = "manifest.json"

	rowLen = 8 // offset and length, big-endian uint32 each

	// MaxClaims is how many claims one pack holds. ZIP counts entries in 16 bits, and two of the
	// 65,535 are the index and the manifest.
	MaxClaims = 1<<16 - 1 - 2

	// MaxPackBytes is the largest pack. ZIP without ZIP64 has 32-bit sizes and offsets, and
	// 0xffffffff itself means "see ZIP64".
	MaxPackBytes = 1<<32 - 2
)

// Entry is one claim to be packed.
type Entry struct {
	HookID      string   // the hook's id, for the manifest
	ContentType string   // the provider's; empty is none
	ReceivedAt  *int64   // Unix milliseconds; nil is unknown
	Body        []byte   // kept, not copied: it must not change while the Object is in use
	SHA256      [32]byte // of Body; trusted, since the message that names the claim carries the same
}

// NewObject returns the pack of one hook, whose ref is HookRef's. The arguments are Entry's.
func NewObject(ref Ref, hookID, contentType string, receivedAt *int64, body []byte, sha256 [32]byte) (*Object, error) {
	return NewPack(ref, []Entry{{
		HookID:      hookID,
		ContentType: contentType,
		ReceivedAt:  receivedAt,
		Body:        body,
		SHA256:      sha256,
	}})
}

// NewPack lays out the pack that ref names, ready to be written. Entry i becomes the claim
// ref.ID.At(i). It reads every body once, for the CRC-32 that a ZIP's local header carries, and
// copies none. The same arguments always give the same bytes.
//
// An error is permanent: no entries or more than MaxClaims, a pack above MaxPackBytes, a ref whose
// position is not 0 or whose tenant is invalid, or text that is not UTF-8.
func NewPack(ref Ref, entries []Entry) (*Object, error) {
	if err := checkPack(ref, entries); err != nil {
		return nil, err
	}
	id := ref.ID

	// Where everything goes is known before a byte is written: the index comes first and holds the
	// offsets of what follows.
	index := make([]byte, 0, rowLen*len(entries))
	at := uint64(localHeaderLen + len(indexName) + rowLen*len(entries))
	for i := range entries {
		at += localHeaderLen + IDLen
		if at > MaxPackBytes || uint64(len(entries[i].Body)) > MaxPackBytes-at {
			return nil, tooLarge()
		}
		index = binary.BigEndian.AppendUint32(index, uint32(at))
		index = binary.BigEndian.AppendUint32(index, uint32(len(entries[i].Body)))
		at += uint64(len(entries[i].Body))
	}
	manifest := appendManifest(nil, id, entries, index)

	directoryAt := at + uint64(localHeaderLen+len(manifestName)+len(manifest))
	directoryLen := uint64(directoryHeaderLen*(len(entries)+2) + len(indexName) + IDLen*len(entries) + len(manifestName))
	size := directoryAt + directoryLen + endRecordLen
	if size > MaxPackBytes {
		return nil, tooLarge()
	}

	// One buffer holds all that is not a body. Its capacity is exact, because the segments below
	// point into it and a reallocation would leave them behind.
	bodies := at - uint64(localHeaderLen+len(indexName)+len(index)+(localHeaderLen+IDLen)*len(entries))
	frame := make([]byte, 0, size-bodies)
	directory := make([]byte, 0, directoryLen)
	segments := make([][]byte, 0, 2*len(entries)+1)

	var name [IDLen]byte
	var offset uint64 // of the next local header
	add := func(name, data []byte) {
		z := zipEntry{name: name, crc: crc32.ChecksumIEEE(data), size: uint32(len(data)), offset: uint32(offset)}
		frame = z.appendLocal(frame)
		directory = z.appendDirectory(directory)
		offset += uint64(localHeaderLen + len(name) + len(data))
	}

	add([]byte(indexName), index)
	frame = append(frame, index...)
	from := 0
	for i := range entries {
		add(id.At(i).AppendTo(name[:0]), entries[i].Body)
		segments = append(segments, frame[from:len(frame):len(frame)])
		if len(entries[i].Body) > 0 {
			segments = append(segments, entries[i].Body)
		}
		from = len(frame)
	}
	add([]byte(manifestName), manifest)
	frame = append(frame, manifest...)
	frame = append(frame, directory...)
	frame = appendEndRecord(frame, len(entries)+2, uint32(directoryLen), uint32(directoryAt))
	segments = append(segments, frame[from:len(frame):len(frame)])

	return newObject(ref.Key(), segments), nil
}

func checkPack(ref Ref, entries []Entry) error {
	if err := ref.Validate(); err != nil {
		return classify.Permanentf(Service, "invalid_field", "tenant_id: %w", err)
	}
	if ref.ID.Position() != 0 {
		return classify.Permanentf(Service, "invalid_field", "claim: id %s is not a pack's, its position is %d", ref.ID, ref.ID.Position())
	}
	if len(entries) == 0 || len(entries) > MaxClaims {
		return classify.Permanentf(Service, "message_too_large", "a pack holds 1 to %d claims, not %d", MaxClaims, len(entries))
	}
	for i := range entries {
		// An encoder would write U+FFFD for what is no text, silently.
		if !utf8.ValidString(entries[i].HookID) {
			return classify.Permanentf(Service, "invalid_field", "id is not valid UTF-8")
		}
		if !utf8.ValidString(entries[i].ContentType) {
			return classify.Permanentf(Service, "invalid_field", "content_type is not valid UTF-8")
		}
	}
	return nil
}

func tooLarge() error {
	return classify.Permanentf(Service, "message_too_large", "the body does not fit a pack of at most %d bytes", uint64(MaxPackBytes))
}

// appendManifest appends the JSON that lists the pack's claims, for people and table engines; a
// redeeming reader needs the index only.
func appendManifest(dst []byte, id ID, entries []Entry, index []byte) []byte {
	dst = append(dst, `{"v":1,"claims":[`...)
	for i := range entries {
		e := &entries[i]
		row := index[rowLen*i:]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"claim_id":"`...)
		dst = id.At(i).AppendTo(dst)
		dst = append(dst, `","id":`...)
		dst = jsonstring.Append(dst, e.HookID)
		dst = append(dst, `,"offset":`...)
		dst = strconv.AppendUint(dst, uint64(binary.BigEndian.Uint32(row)), 10)
		dst = append(dst, `,"length":`...)
		dst = strconv.AppendUint(dst, uint64(binary.BigEndian.Uint32(row[4:])), 10)
		dst = append(dst, `,"sha256":"`...)
		dst = hex.AppendEncode(dst, e.SHA256[:])
		dst = append(dst, `","content_type":`...)
		if e.ContentType == "" {
			dst = append(dst, "null"...)
		} else {
			dst = jsonstring.Append(dst, e.ContentType)
		}
		dst = append(dst, `,"received_at":`...)
		if e.ReceivedAt == nil {
			dst = append(dst, "null"...)
		} else {
			dst = strconv.AppendInt(dst, *e.ReceivedAt, 10)
		}
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}
