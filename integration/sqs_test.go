package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// The region and keys that every server here is asked with; those of our own cloud are checked.
const (
	region    = localsqs.DefaultRegion
	accessKey = localsqs.DefaultAccessKeyID
	secretKey = localsqs.DefaultSecretAccessKey
)

func TestSQS(t *testing.T) {
	t.Run("localsqs", func(t *testing.T) {
		l, err := localcloud.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := localcloud.Serve(l, localsqs.New(localsqs.Options{}))
		t.Cleanup(func() { _ = s.Close() })
		sqsSuite(t, s.URL())
	})
	t.Run("fauxqs", func(t *testing.T) { sqsSuite(t, peers.Fauxqs(t)) })
	t.Run("moto", func(t *testing.T) { sqsSuite(t, peers.Moto(t)) })
	if endpoint := os.Getenv("SQS_ENDPOINT"); endpoint != "" {
		t.Run("SQS_ENDPOINT", func(t *testing.T) { peers.Await(t, endpoint); sqsSuite(t, endpoint) })
	}
}

// sqsPeer is a server as an independent reader and our client see it.
type sqsPeer struct {
	t      *testing.T
	base   string
	reader *awssqs.Client
	client *sqs.Client
}

func newSQSPeer(t *testing.T, base string) *sqsPeer {
	t.Helper()
	keys, err := sqs.LoadCredentials(sqs.CredentialOptions{ID: accessKey, Secret: secretKey, Region: region})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keys.Close)
	w := wire.New(wire.Options{Service: "sqs", Timeout: 30 * time.Second})
	t.Cleanup(w.Close)
	client, err := sqs.New(sqs.Options{Region: region, Endpoint: base, Credentials: keys, Wire: w, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return &sqsPeer{t: t, base: base, client: client, reader: awssqs.New(awssqs.Options{
		Region: region, BaseEndpoint: aws.String(base),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
		HTTPClient:  peers.SDKClient(t),
	})}
}

// queue makes a queue of its own for a test and returns its URL.
func (p *sqsPeer) queue(suffix string) string {
	p.t.Helper()
	name := fmt.Sprintf("wire-%d%s", time.Now().UnixNano(), suffix)
	in := &awssqs.CreateQueueInput{QueueName: &name}
	if suffix != "" {
		in.Attributes = map[string]string{"FifoQueue": "true"}
	}
	out, err := p.reader.CreateQueue(p.t.Context(), in)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_, _ = p.reader.DeleteQueue(context.WithoutCancel(p.t.Context()), &awssqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
	})
	return *out.QueueUrl
}

// receive reads and deletes n messages.
func (p *sqsPeer) receive(url string, n int) (out []types.Message) {
	p.t.Helper()
	for tries := 0; len(out) < n && tries < 20; tries++ {
		got, err := p.reader.ReceiveMessage(p.t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, m := range got.Messages {
			if _, err := p.reader.DeleteMessage(p.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				p.t.Fatal(err)
			}
		}
		out = append(out, got.Messages...)
	}
	if len(out) != n {
		p.t.Fatalf("received %d messages, want %d", len(out), n)
	}
	return out
}

func sqsSuite(t *testing.T, base string) {
	t.Run("what we send is what an SDK reads", func(t *testing.T) {
		p := newSQSPeer(t, base)
		url := p.queue("")
		bodies := []string{
			"plain", `{"json":"with \"quotes\" and \\ and / <>&"}`, "tab\tlf\ncr\r", "é ☃ \u2028 \ufffd", "\u007f\u0085",
			strings.Repeat("x", 100_000), "z", "y", "w", "v",
		}
		entries := make([]sqs.Entry, len(bodies))
		for i, b := range bodies {
			entries[i] = sqs.Entry{Body: []byte(b), Attributes: []sqs.Attribute{{Name: "n", Value: fmt.Sprint(i)}, {Name: "content_type", Value: "application/json"}, {Name: "dots.and-dashes_1", Value: "ü\tx"}}}
			if err := entries[i].Validate(0); err != nil {
				t.Fatal(err)
			}
		}
		for i, err := range p.client.Send(t.Context(), url, entries) {
			if err != nil {
				t.Errorf("entry %d: %v", i, err)
			}
		}
		seen := map[string]bool{}
		for _, m := range p.receive(url, len(bodies)) {
			var i int
			_, _ = fmt.Sscan(aws.ToString(m.MessageAttributes["n"].StringValue), &i)
			if *m.Body != bodies[i] {
				t.Errorf("body %d came as %.40q, want %.40q", i, *m.Body, bodies[i])
			}
			if got := aws.ToString(m.MessageAttributes["dots.and-dashes_1"].StringValue); got != "ü\tx" {
				t.Errorf("attribute came as %q", got)
			}
			seen[*m.Body] = true
		}
		if len(seen) != len(bodies) {
			t.Errorf("%d different bodies, want %d", len(seen), len(bodies))
		}
	})
	t.Run("a group's order and a repeat on FIFO", func(t *testing.T) {
		p := newSQSPeer(t, base)
		url := p.queue(".fifo")
		entry := func(i int) sqs.Entry {
			return sqs.Entry{Body: fmt.Appendf(nil, `{"n":%d}`, i), GroupID: "acme/stripe", DeduplicationID: fmt.Sprintf("id-%d:replay:r", i)}
		}
		var all []sqs.Entry
		for i := range 10 {
			all = append(all, entry(i))
		}
		for range 2 { // the second time every one is a repeat
			for i, err := range p.client.Send(t.Context(), url, all) {
				if err != nil {
					t.Errorf("entry %d: %v", i, err)
				}
			}
		}
		for i, m := range p.receive(url, 10) {
			var got struct{ N int }
			if err := json.Unmarshal([]byte(*m.Body), &got); err != nil || got.N != i {
				t.Errorf("message %d is %s", i, *m.Body)
			}
			if g := m.Attributes["MessageGroupId"]; g != "acme/stripe" {
				t.Errorf("group %q", g)
			}
		}
	})
	t.Run("a missing queue is a config error", func(t *testing.T) {
		p := newSQSPeer(t, base)
		url := p.queue("")
		missing := url[:strings.LastIndexByte(url, '/')] + "/no-such-queue"
		errs := p.client.Send(t.Context(), missing, []sqs.Entry{{Body: []byte("a")}, {Body: []byte("b")}})
		for i, err := range errs {
			if e := classify.Of(err); e == nil || e.Class != classify.Config || !classify.IsSQSCode(e.Code, "QueueDoesNotExist") && !classify.IsSQSCode(e.Code, "NonExistentQueue") {
				t.Errorf("entry %d: %v, want config QueueDoesNotExist", i, err)
			}
		}
	})
	t.Run("one message by SendMessage", func(t *testing.T) {
		p := newSQSPeer(t, base)
		url := p.queue("")
		keys, err := sqs.LoadCredentials(sqs.CredentialOptions{ID: accessKey, Secret: secretKey, Region: region})
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		w := wire.New(wire.Options{Service: "sqs"})
		defer w.Close()
		single, err := sqs.New(sqs.Options{Region: region, Endpoint: base, Credentials: keys, Wire: w, Single: true})
		if err != nil {
			t.Fatal(err)
		}
		body := bytes.Repeat([]byte("a"), 200_000)
		if errs := single.Send(t.Context(), url, []sqs.Entry{{Body: body, Attributes: []sqs.Attribute{{Name: "a", Value: "b"}}}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		if m := p.receive(url, 1)[0]; !slices.Equal([]byte(*m.Body), body) {
			t.Errorf("came with %d bytes", len(*m.Body))
		}
	})
}
