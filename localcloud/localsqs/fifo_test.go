package localsqs

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func sendFIFO(t *testing.T, s *SQS, group, dedup, body string) answer {
	t.Helper()
	d := m{"QueueUrl": fifo, "MessageBody": body, "MessageGroupId": group}
	if dedup != "" {
		d["MessageDeduplicationId"] = dedup
	}
	a := raw(t, s, "SendMessage", doc(t, d))
	if a.status != 200 {
		t.Fatalf("SendMessage answered %s", a.raw)
	}
	return a
}

// A retry within five minutes, to the last moment, is answered as its original and stored once, also
// when the original is deleted and when the body has changed.
func TestDeduplicationWindow(t *testing.T) {
	clock := newManual()
	s := New(Options{AnySigner: true, AutoCreate: true, Now: clock.now})
	first := sendFIFO(t, s, "g", "d", "one")
	got := s.Receive("q.fifo", 1, 0)
	raw(t, s, "DeleteMessage", doc(t, m{"QueueUrl": fifo, "ReceiptHandle": got[0].ReceiptHandle}))
	clock.add(DeduplicationWindow - time.Nanosecond)
	again := sendFIFO(t, s, "other", "d", "two")
	if again.fields["MessageId"] != first.fields["MessageId"] || again.fields["SequenceNumber"] != first.fields["SequenceNumber"] {
		t.Errorf("the duplicate was answered %s, its original %s", again.raw, first.raw)
	}
	if again.fields["MD5OfMessageBody"] != md5Hex("two") {
		t.Errorf("MD5 %v, want that of the body sent", again.fields["MD5OfMessageBody"])
	}
	if st := s.Stats("q.fifo"); st.Messages != 1 || st.Duplicates != 1 || st.Requests != 2 || st.Groups != 1 {
		t.Errorf("stats %+v, want 1 message, 1 duplicate, 2 requests, 1 group", st)
	}
	clock.add(time.Nanosecond)
	sendFIFO(t, s, "g", "d", "three")
	if n := len(s.Messages("q.fifo")); n != 2 {
		t.Errorf("%d messages after the window, want 2", n)
	}
}

func TestDeduplicationByContentAndByGroup(t *testing.T) {
	s := New(Options{AnySigner: true})
	s.CreateQueue("q.fifo", map[string]string{"ContentBasedDeduplication": "true", "DeduplicationScope": "messageGroup"})
	for _, group := range []string{"a", "a", "b"} {
		sendFIFO(t, s, group, "", "same")
	}
	sendFIFO(t, s, "a", "", "else")
	if st := s.Stats("q.fifo"); st.Messages != 3 || st.Duplicates != 1 {
		t.Errorf("%d messages, %d duplicates, want 3 and 1", st.Messages, st.Duplicates)
	}
}

func TestDuplicateWithinOneBatch(t *testing.T) {
	s := New(Options{AnySigner: true, AutoCreate: true})
	e := func(id string) m {
		return m{"Id": id, "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
	}
	a := raw(t, s, "SendMessageBatch", doc(t, m{"QueueUrl": fifo, "Entries": []m{e("0"), e("1")}}))
	if id := a.listed("Successful", "0", "MessageId"); id == "" || id != a.listed("Successful", "1", "MessageId") {
		t.Errorf("answered %s, want one message id for both", a.raw)
	}
	if n := len(s.Messages("q.fifo")); n != 1 {
		t.Errorf("%d messages stored, want 1", n)
	}
}

func bodies(r []Received) string {
	var all strings.Builder
	for _, x := range r {
		all.WriteString(x.Body)
	}
	return all.String()
}

// A group with a message in flight gives nothing more; other groups do; and what becomes visible
// again comes first.
func TestReceiveLocksGroups(t *testing.T) {
	clock := newManual()
	s := New(Options{AnySigner: true, AutoCreate: true, Now: clock.now})
	for i, g := range []string{"a", "b", "a", "a"} {
		sendFIFO(t, s, g, fmt.Sprint(i), fmt.Sprint(i))
	}
	const time30 = 30 * time.Second
	if got := bodies(s.Receive("q.fifo", 1, time30)); got != "0" {
		t.Fatalf("received %q, want 0", got)
	}
	if got := bodies(s.Receive("q.fifo", 10, time30)); got != "1" {
		t.Fatalf("received %q while group a is locked, want 1", got)
	}
	clock.add(time30)
	got := s.Receive("q.fifo", 2, time30)
	if bodies(got) != "01" {
		t.Fatalf("received %q after the timeout, want 01", bodies(got))
	}
	raw(t, s, "DeleteMessage", doc(t, m{"QueueUrl": fifo, "ReceiptHandle": got[0].ReceiptHandle}))
	if got := bodies(s.Receive("q.fifo", 10, time30)); got != "23" {
		t.Errorf("received %q once the group is free, want 23 in one reply", got)
	}
}

func TestLongPollEndsWhenAMessageComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{AnySigner: true, AutoCreate: true})
		start := time.Now()
		if a := raw(t, s, "ReceiveMessage", doc(t, m{"QueueUrl": standard, "WaitTimeSeconds": 20})); a.fields["Messages"] != nil || time.Since(start) != 20*time.Second {
			t.Errorf("an empty queue answered %s after %v, want nothing after 20s", a.raw, time.Since(start))
		}
		go func() {
			time.Sleep(3 * time.Second)
			raw(t, s, "SendMessage", doc(t, m{"QueueUrl": standard, "MessageBody": "x", "DelaySeconds": 4}))
		}()
		start = time.Now()
		a := raw(t, s, "ReceiveMessage", doc(t, m{"QueueUrl": standard, "WaitTimeSeconds": 20}))
		if a.fields["Messages"] == nil || time.Since(start) != 7*time.Second {
			t.Errorf("answered %s after %v, want the message after 3s and its delay of 4s", a.raw, time.Since(start))
		}
	})
}
