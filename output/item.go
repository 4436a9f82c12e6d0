package output

import (
	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// item is one message on its way through a write. The fields below are set in their order: by
// hookReader, by the cloud's address, by the uploader's swap, by the cloud's measure.
type item struct {
	index   int // in the batch
	hook    message.Hook
	decoded *message.Decoded // format ankusa; hook is then unused
	raw     []byte           // format ankusa: the message as it came

	queue      string // queue URL or topic
	group      string // what goes on the wire: MessageGroupId or orderingKey
	ordered    bool   // group orders; on a standard queue it is only a label
	dedupID    string // MessageDeduplicationId of a FIFO queue
	delay      *int32 // DelaySeconds of a standard queue
	attributes []message.Attribute

	object     *claim.Object // to be stored before the message is sent; nil for most
	size, wire int           // counted by the cloud's rules
}

// messageSize is the length of the encoded message.
func (it *item) messageSize() int {
	if it.decoded != nil {
		return len(it.raw)
	}
	return it.hook.Size()
}

// tenant is whose turn it is in the scheduler's round.
func (it *item) tenant() string {
	if it.decoded != nil {
		return it.decoded.TenantID
	}
	return it.hook.TenantID
}

// defaultGroup is the FIFO group of a message without a configured one.
func (it *item) defaultGroup() string {
	if it.decoded != nil {
		return it.decoded.Group()
	}
	return it.hook.Group()
}

// deduplicationID is what a FIFO queue collapses retries by.
func (it *item) deduplicationID() string {
	if it.decoded != nil {
		return it.decoded.DeduplicationID()
	}
	return it.hook.DeduplicationID()
}

// appendOwnAttributes appends the attributes that every Ankusa message has.
func (it *item) appendOwnAttributes(dst []message.Attribute) []message.Attribute {
	if it.decoded != nil {
		return it.decoded.AppendAttributes(dst)
	}
	return it.hook.AppendAttributes(dst)
}
