package sqs

import (
	"strconv"
	"sync"

	"github.com/ankusa-connect/ankusa-connect/internal/jsonstring"
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

// appendString appends s as a JSON string. Only what JSON requires is escaped, so a message costs no
// more on the wire than it must; s is valid UTF-8, which is passed through.
func appendString(dst []byte, s string) []byte { return jsonstring.Append(dst, s) }

// appendBytes is appendString for a message's body.
func appendBytes(dst, s []byte) []byte { return jsonstring.Append(dst, s) }
