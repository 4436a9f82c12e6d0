package localsqs

import "github.com/ankusa-connect/ankusa-connect/localcloud"

// SendMessage.
//
// Supported: all members, with the rules for one message. Entry faults that have a meaning without
// per-entry results: Refuse (the request fails), Drop and DropUnstored (an empty result), the wrong
// MD5s.
//
// Simplified and omitted: as SendMessageBatch.

type sendResult struct {
	MessageID                    string `json:"MessageId,omitempty"`
	MD5OfMessageBody             string `json:",omitempty"`
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string `json:",omitempty"`
}

func (s *SQS) sendMessage(x *exchange) (any, *apiError) {
	s.mu.Lock()
	q, err := s.queueLocked(x.request)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	o := s.store(q, x, []entry{x.request.single})[0]
	if o.err != nil {
		s.mu.Lock()
		q.stats.refused[o.err.query()]-- // the request is counted where its refusal is answered
		s.mu.Unlock()
		return nil, o.err
	}
	result := &sendResult{}
	if o.stored != nil {
		*result = sendResult{
			MessageID: o.stored.id, SequenceNumber: o.stored.sequence,
			MD5OfMessageBody: o.body, MD5OfMessageAttributes: o.attrs, MD5OfMessageSystemAttributes: o.system,
		}
	}
	for _, f := range o.faults {
		switch f.Do {
		case localcloud.Drop:
			*result = sendResult{}
		case localcloud.WrongMD5:
			result.MD5OfMessageBody = wrongMD5
		case localcloud.WrongAttributeMD5:
			result.MD5OfMessageAttributes = wrongMD5
		}
	}
	return result, nil
}
