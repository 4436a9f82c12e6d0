package localsqs

import (
	"encoding/base64"
	"strings"
)

// DeleteMessage and DeleteMessageBatch.
//
// Supported: receipt handles of this queue, of any of a message's receives.
//
// Simplified: a handle whose visibility is over still deletes, on FIFO queues too; what is deleted
// stays visible to Messages.

func (s *SQS) deleteMessage(x *exchange) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queueLocked(x.request)
	if err != nil {
		return nil, err
	}
	if x.request.receiptHandle == "" {
		return nil, missingParameter("ReceiptHandle")
	}
	return nil, q.deleteLocked(x.request.receiptHandle)
}

func (s *SQS) deleteMessageBatch(x *exchange) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.queueLocked(x.request)
	if err != nil {
		return nil, err
	}
	entries := x.request.entries
	if len(entries) == 0 {
		return nil, fail("EmptyBatchRequest", "There should be at least one DeleteMessageBatchRequestEntry in the request.")
	}
	if err := checkEntryIDs(entries, "DeleteMessageBatchRequestEntry"); err != nil {
		return nil, err
	}
	var result struct {
		Successful []struct{ Id string } `json:",omitempty"` //nolint:revive // the wire's name
		Failed     []failedEntry         `json:",omitempty"`
	}
	for i := range entries {
		if err := q.deleteLocked(entries[i].receiptHandle); err != nil {
			result.Failed = append(result.Failed, failedEntry{ID: entries[i].id, SenderFault: true, Code: err.query(), Message: err.message})
			continue
		}
		result.Successful = append(result.Successful, struct{ Id string }{entries[i].id})
	}
	return &result, nil
}

// deleteLocked deletes the message that handle was given for. One that is gone is deleted again.
func (q *queue) deleteLocked(handle string) *apiError {
	raw, err := base64.StdEncoding.DecodeString(handle)
	id, _, ok := strings.Cut(string(raw), " ")
	if err != nil || !ok {
		return fail("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	for _, m := range q.messages[q.head:] {
		if m.id == id {
			m.deleted, m.inFlight = true, false
			break
		}
	}
	q.forgetDeletedLocked()
	return nil
}
