package sqs_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// local is a client of a strict SQS that shares nothing with it.
func local(t *testing.T, o localsqs.Options, timeout time.Duration) (*localsqs.SQS, *sqs.Client, string) {
	t.Helper()
	o.AutoCreate = true
	cloud := localsqs.New(o)
	s := httptest.NewServer(cloud)
	t.Cleanup(s.Close)
	creds, err := sqs.LoadCredentials(sqs.CredentialOptions{ID: localsqs.DefaultAccessKeyID, Secret: localsqs.DefaultSecretAccessKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(creds.Close)
	w := wire.New(wire.Options{Service: "sqs", Timeout: timeout})
	t.Cleanup(w.Close)
	c, err := sqs.New(sqs.Options{Region: localsqs.DefaultRegion, Credentials: creds, Wire: w, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	return cloud, c, s.URL + "/000000000000/"
}

func TestStrictServiceTakesWhatWeSend(t *testing.T) {
	cloud, c, base := local(t, localsqs.Options{}, time.Minute)
	entries := goldenEntries()
	for i := range entries {
		if err := entries[i].Validate(0); err != nil {
			t.Fatal(err)
		}
	}
	wantOutcomes(t, c.Send(t.Context(), base+"q", entries), "ok", "ok", "ok")
	wantOutcomes(t, c.Send(t.Context(), base+"q.fifo", entries), "ok", "ok", "ok")
	wantOutcomes(t, c.Send(t.Context(), base+"q.fifo", entries), "ok", "ok", "ok") // the window absorbs a retry
	for _, q := range []string{"q", "q.fifo"} {
		messages := cloud.Messages(q)
		if len(messages) != len(entries) {
			t.Fatalf("%s holds %d messages, want %d", q, len(messages), len(entries))
		}
		for i, m := range messages {
			e := &entries[i]
			if m.Body != string(e.Body) || m.Size != e.Size() || m.Group != e.GroupID || len(m.Attributes) != len(e.Attributes) {
				t.Errorf("%s: stored %+v, sent %+v of size %d", q, m, e, e.Size())
			}
			if fifo := q == "q.fifo"; (m.DeduplicationID != "") != fifo || fifo && m.DeduplicationID != e.DeduplicationID {
				t.Errorf("%s: deduplication id %q", q, m.DeduplicationID)
			}
			for _, a := range e.Attributes {
				if m.Attributes[a.Name] != a.Value || m.AttributeTypes[a.Name] != "String" {
					t.Errorf("%s: attribute %s = %q", q, a.Name, m.Attributes[a.Name])
				}
			}
		}
	}
}

// The limit counts attributes: a message of exactly the limit goes, and two that are too long together
// go in two requests.
func TestLimitsAreTheServices(t *testing.T) {
	cloud, c, base := local(t, localsqs.Options{}, time.Minute)
	attributes := []sqs.Attribute{{"n", "value"}}
	e := sqs.Entry{Body: []byte(strings.Repeat("é", (sqs.MaxMessageBytes-12)/2)), Attributes: attributes}
	if e.Size() != sqs.MaxMessageBytes || e.Validate(0) != nil {
		t.Fatalf("size = %d, %v", e.Size(), e.Validate(0))
	}
	wantOutcomes(t, c.Send(t.Context(), base+"q", []sqs.Entry{e}), "ok")
	half := sqs.Entry{Body: []byte(strings.Repeat("x", sqs.MaxMessageBytes/2)), Attributes: attributes}
	wantOutcomes(t, c.Send(t.Context(), base+"q", []sqs.Entry{half, half}), "ok", "ok")
	if n := cloud.Requests("SendMessageBatch"); n != 4 {
		t.Errorf("requests = %d, want 4: one, one refused, two halves", n)
	}
}

// What the character set of our Validate lets through, the service takes, and nothing else.
func TestCharactersAreTheServices(t *testing.T) {
	_, c, base := local(t, localsqs.Options{}, time.Minute)
	for _, r := range []rune{0, 1, 0xb, 0x1f, 0xfffe, 0xffff, '\t', '\n', '\r', ' ', 0x7f, 0x85, 0xd7ff, 0xe000, 0xfffd, 0x10000, 0x1f600, 0x1fffe, 0x1ffff, 0x10ffff} {
		e := sqs.Entry{Body: []byte("a" + string(r))}
		local, remote := e.Validate(0), c.Send(t.Context(), base+"q", []sqs.Entry{e})[0]
		if (local == nil) != (remote == nil) {
			t.Errorf("%U: we say %v, the service says %v", r, local, remote)
		}
	}
}

func TestFaultsOfTheServiceAreRead(t *testing.T) {
	for _, tc := range []struct {
		name   string
		effect localcloud.Effect
		want   string
		times  int
	}{
		{"cut after storing", localcloud.Effect{Cut: true, Stored: true}, "transient no_reply", 1},
		{"reset", localcloud.Effect{Reset: true}, "transient no_reply", 1},
		{"stall", localcloud.Effect{Stall: true}, "transient no_reply", 1},
		{"half a document", localcloud.Effect{Truncate: true}, "transient unexpected_reply", 1},
		{"half a reply", localcloud.Effect{CutReply: true}, "transient unexpected_reply", 1},
		{"endless", localcloud.Effect{Endless: true}, "transient unexpected_reply", 1},
		{"trickle", localcloud.Effect{Trickle: time.Minute}, "transient unexpected_reply", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cloud, c, base := local(t, localsqs.Options{}, 700*time.Millisecond)
			cloud.Faults.Add(localcloud.Fault{Effect: tc.effect, Times: tc.times})
			wantOutcomes(t, c.Send(t.Context(), base+"q.fifo", entriesOf("g:a g:b")), tc.want, tc.want)
			wantOutcomes(t, c.Send(t.Context(), base+"q.fifo", entriesOf("g:a g:b")), "ok", "ok")
			if n := len(cloud.Messages("q.fifo")); n != 2 {
				t.Errorf("stored %d, want 2: the same ids over every retry", n)
			}
		})
	}
}

// A connection that the server closed while idle costs nobody anything.
func TestStaleConnectionIsNotNoticed(t *testing.T) {
	cloud, c, base := local(t, localsqs.Options{}, time.Minute)
	wantOutcomes(t, c.Send(t.Context(), base+"q", entriesOf("a")), "ok")
	cloud.Faults.Add(localcloud.Fault{Effect: localcloud.Effect{Reset: true}, Times: 1})
	wantOutcomes(t, c.Send(t.Context(), base+"q", entriesOf("b")), "ok")
	if n := cloud.Requests("SendMessageBatch"); n != 3 {
		t.Errorf("requests = %d, want 3", n)
	}
}

func TestServicesClockIsLearnt(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(20 * time.Minute) }
	cloud, c, base := local(t, localsqs.Options{Now: ahead}, time.Minute)
	for range 3 {
		wantOutcomes(t, c.Send(t.Context(), base+"q", entriesOf("a")), "ok")
	}
	if n := cloud.Requests("SendMessageBatch"); n != 4 {
		t.Errorf("requests = %d, want 4: one refused, three good", n)
	}
}

func BenchmarkSend(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("entries=10/bytes=%d", size), func(b *testing.B) {
			entries := make([]sqs.Entry, 10)
			for i := range entries {
				entries[i].Body = []byte(strings.Repeat("a", size))
			}
			reply := []byte(batchAnswer(&got{Entries: gotOf(entries)}, nil).body)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Write(reply)
			}))
			b.Cleanup(s.Close)
			w := wire.New(wire.Options{Service: "sqs"})
			b.Cleanup(w.Close)
			c, err := sqs.New(sqs.Options{Region: "eu-west-1", Endpoint: s.URL, Credentials: goodKeys(), Wire: w, Getenv: env()})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(10 * size))
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range c.Send(b.Context(), standard, entries) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

func gotOf(entries []sqs.Entry) []gotEntry {
	var all []gotEntry
	for i, e := range entries {
		all = append(all, gotEntry{ID: fmt.Sprint(i), MessageBody: string(e.Body)})
	}
	return all
}
