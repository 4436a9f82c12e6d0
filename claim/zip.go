package claim

import "encoding/binary"

// The parts of a ZIP that a pack uses, from PKWARE's APPNOTE 4.3: everything is little-endian.
const (
	localHeaderLen     = 30
	directoryHeaderLen = 46
	endRecordLen       = 22

	localSignature     = 0x04034b50
	directorySignature = 0x02014b50
	endSignature       = 0x06054b50

	// zipVersion is 2.0, both "made by" (on MS-DOS, whose attributes are all zero, so that the
	// bytes do not depend on where they were made) and "needed to extract".
	zipVersion = 20

	// dosDate is 1980-01-01, the earliest day ZIP knows. A real time would make the bytes of a
	// retry differ from the first try's.
	dosDate = 0x0021
)

// zipEntry is a stored entry. The CRC stands in its local header, not behind the data, because a
// reader of a stored entry with a data descriptor cannot find the entry's end without the
// directory.
type zipEntry struct {
	name   []byte
	crc    uint32
	size   uint32
	offset uint32 // of its local header
}

func (z *zipEntry) appendLocal(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, localSignature)
	dst = z.appendCommon(dst)
	return append(dst, z.name...)
}

func (z *zipEntry) appendDirectory(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, directorySignature)
	dst = le.AppendUint16(dst, zipVersion) // made by
	dst = z.appendCommon(dst)
	dst = le.AppendUint16(dst, 0) // comment length
	dst = le.AppendUint16(dst, 0) // disk
	dst = le.AppendUint16(dst, 0) // internal attributes
	dst = le.AppendUint32(dst, 0) // external attributes
	dst = le.AppendUint32(dst, z.offset)
	return append(dst, z.name...)
}

// appendCommon appends the fields that both headers share, from the version to the length of the
// extra field.
func (z *zipEntry) appendCommon(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint16(dst, zipVersion) // needed
	dst = le.AppendUint16(dst, 0)          // flags
	dst = le.AppendUint16(dst, 0)          // method: stored
	dst = le.AppendUint16(dst, 0)          // time
	dst = le.AppendUint16(dst, dosDate)
	dst = le.AppendUint32(dst, z.crc)
	dst = le.AppendUint32(dst, z.size) // compressed
	dst = le.AppendUint32(dst, z.size) // uncompressed
	dst = le.AppendUint16(dst, uint16(len(z.name)))
	return le.AppendUint16(dst, 0) // extra field
}

func appendEndRecord(dst []byte, entries int, directoryLen, directoryAt uint32) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, endSignature)
	dst = le.AppendUint16(dst, 0) // this disk
	dst = le.AppendUint16(dst, 0) // the directory's disk
	dst = le.AppendUint16(dst, uint16(entries))
	dst = le.AppendUint16(dst, uint16(entries))
	dst = le.AppendUint32(dst, directoryLen)
	dst = le.AppendUint32(dst, directoryAt)
	return le.AppendUint16(dst, 0) // comment length
}
