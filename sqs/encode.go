package sqs

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"sync"
)

// maxPooledBytes is the largest buffer that is kept for the next request: a full batch of messages with
// room for the JSON around them. What escapes blew up further is left to the collector.
const maxPooledBytes = MaxMessageBytes + MaxMessageBytes/4

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func putBuffer(b *[]byte) {
	if cap(*b) <= maxPooledBytes {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// appendBatch appends the body of a SendMessageBatch for the entries that pick names. Their ids are
// their positions in pick.
func appendBatch(dst []byte, queueURL string, fifo bool, entries []Entry, pick []int) []byte {
	dst = append(dst, `{"QueueUrl":`...)
	dst = appendString(dst, queueURL)
	dst = append(dst, `,"Entries":[`...)
	for id, i := range pick {
		if id > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"Id":"`...)
		dst = strconv.AppendInt(dst, int64(id), 10)
		dst = append(dst, `",`...)
		dst = appendMessage(dst, fifo, &entries[i])
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}

// appendSingle appends the body of a SendMessage.
func appendSingle(dst []byte, queueURL string, fifo bool, e *Entry) []byte {
	dst = append(dst, `{"QueueUrl":`...)
	dst = appendString(dst, queueURL)
	dst = append(dst, ',')
	dst = appendMessage(dst, fifo, e)
	return append(dst, '}')
}

// appendMessage appends what both actions have in common, without the braces. A standard queue refuses a
// deduplication id and a FIFO queue a delay, so they aren't sent there.
func appendMessage(dst []byte, fifo bool, e *Entry) []byte {
	dst = append(dst, `"MessageBody":`...)
	dst = appendBytes(dst, e.Body)
	if e.DelaySeconds != nil && !fifo {
		dst = append(dst, `,"DelaySeconds":`...)
		dst = strconv.AppendInt(dst, int64(*e.DelaySeconds), 10)
	}
	if len(e.Attributes) > 0 {
		dst = append(dst, `,"MessageAttributes":{`...)
		for i := range e.Attributes {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, e.Attributes[i].Name)
			dst = append(dst, `:{"DataType":"`+dataType+`","StringValue":`...)
			dst = appendString(dst, e.Attributes[i].Value)
			dst = append(dst, '}')
		}
		dst = append(dst, '}')
	}
	if e.GroupID != "" {
		dst = append(dst, `,"MessageGroupId":`...)
		dst = appendString(dst, e.GroupID)
	}
	if e.DeduplicationID != "" && fifo {
		dst = append(dst, `,"MessageDeduplicationId":`...)
		dst = appendString(dst, e.DeduplicationID)
	}
	return dst
}

// sizeHint returns about how long a request will be, so that its buffer grows once.
func sizeHint(entries []Entry, pick []int) int {
	n := 256
	for _, i := range pick {
		e := &entries[i]
		// A thirty-second of the body for escapes; ours have about twenty quotes for each message.
		n += e.Size() + len(e.Body)/32 + 40*len(e.Attributes) + len(e.GroupID) + len(e.DeduplicationID) + 320
	}
	return n
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Only what JSON requires is escaped, so a message costs no
// more on the wire than it must; s is valid UTF-8, which is passed through.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		if c := s[i]; needsEscape(c) {
			dst = appendEscape(append(dst, s[start:i]...), c)
			start = i + 1
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendBytes is appendString for a message's body, eight bytes at a time: nearly all of it is base64,
// which needs no escape.
func appendBytes(dst, s []byte) []byte {
	dst = append(dst, '"')
	start, i := 0, 0
	for {
		for ; i+8 <= len(s); i += 8 {
			if n := cleanBytes(binary.LittleEndian.Uint64(s[i:])); n < 8 {
				i += n
				break
			}
		}
		// At what needs an escape, or within eight bytes of the end.
		for i < len(s) && !needsEscape(s[i]) {
			i++
		}
		if i == len(s) {
			break
		}
		dst = appendEscape(append(dst, s[start:i]...), s[i])
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func needsEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	// None of these is in what SQS takes, but a request stays JSON whatever it holds.
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// cleanBytes returns how many of the low bytes of w, from the first, need no escape.
func cleanBytes(w uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	// A byte's high bit ends up set where the byte is zero after the exclusive or; borrows only ever
	// spoil bytes above the first true hit, and the first is all that counts.
	quote := w ^ '"'*ones
	slash := w ^ '\\'*ones
	hit := (w - ' '*ones) & ^w
	hit |= (quote - ones) & ^quote
	hit |= (slash - ones) & ^slash
	return bits.TrailingZeros64(hit&highs) / 8
}
