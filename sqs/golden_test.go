package sqs_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ankusa-connect/ankusa-connect/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var update = flag.Bool("update", false, "write the golden files")

func goldenEntries() []sqs.Entry {
	return []sqs.Entry{
		{
			Body: []byte(`{"v":1,"id":"01a0","headers":{"x-a":"tab\tquote\"é\ufffe"},"body_base64":"aGVsbG8="}`),
			Attributes: []sqs.Attribute{
				{"ankusa_id", "01a0"}, {"ankusa_source_id", "stripe"}, {"ankusa_message_version", "1"},
				{"ankusa_idempotency_key", "acme:stripe:evt_\"1\"\\"}, {"content_type", "application/json"},
			},
			GroupID: "acme/stripe", DeduplicationID: "01a0",
		},
		{Body: []byte("a tab\tand é 😀 <&> \u2028"), GroupID: "/stripe", DeduplicationID: "01a1:replay:\"r\"", DelaySeconds: aws.Int32(0)},
		{Body: []byte("x"), GroupID: "g", DeduplicationID: "2", DelaySeconds: aws.Int32(900)},
	}
}

// The golden files hold whole requests, headers in order of name, signature included.
func TestRequestsAreTheGoldenOnes(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name, queue string
		single      bool
		entries     []sqs.Entry
	}{
		{"batch-standard", standard, false, goldenEntries()},
		{"batch-fifo", fifo, false, goldenEntries()},
		{"single-standard", standard, true, goldenEntries()[:1]},
		{"single-fifo", fifo, true, goldenEntries()[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, nil)
			f.now = func() time.Time { return at }
			c := f.client(t, sqs.Options{Single: tc.single, Now: func() time.Time { return at }})
			wantOutcomes(t, c.Send(t.Context(), tc.queue, tc.entries), repeat("ok", len(tc.entries))...)
			g := f.requests[0]
			var b bytes.Buffer
			fmt.Fprintf(&b, "POST %s\nHost: %s\n", g.uri, g.host)
			var lines []string
			for k, v := range g.header {
				lines = append(lines, k+": "+strings.Join(v, ", "))
			}
			slices.Sort(lines)
			fmt.Fprintf(&b, "%s\n\n%s\n", strings.Join(lines, "\n"), g.raw)
			path := filepath.Join("testdata", tc.name+".http")
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("the request differs from %s:\n got %s\nwant %s", path, b.Bytes(), want)
			}
		})
	}
}

// The SDK's own client is an independent reader of the same API reference.
func TestRequestMeansWhatTheSDKs(t *testing.T) {
	f := newFake(t, nil)
	entries := goldenEntries()
	wantOutcomes(t, f.client(t, sqs.Options{}).Send(t.Context(), standard, entries), repeat("ok", 3)...)

	in := &sdk.SendMessageBatchInput{QueueUrl: aws.String(standard)}
	for i, e := range entries {
		x := types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(string(e.Body)), MessageGroupId: aws.String(e.GroupID)}
		if e.DelaySeconds != nil {
			x.DelaySeconds = *e.DelaySeconds
		}
		for _, a := range e.Attributes {
			if x.MessageAttributes == nil {
				x.MessageAttributes = map[string]types.MessageAttributeValue{}
			}
			x.MessageAttributes[a.Name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(a.Value)}
		}
		in.Entries = append(in.Entries, x)
	}
	theirs := sdk.New(sdk.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(f.url),
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret/with+signs", "token"),
		HTTPClient:  noKeepAlive(),
	})
	if _, err := theirs.SendMessageBatch(t.Context(), in); err != nil {
		t.Fatal(err) // our fake's signature check and reply hold for the SDK too
	}
	ours, other := f.requests[0], f.requests[1]
	for _, name := range []string{"Content-Type", "X-Amz-Target", "X-Amzn-Query-Mode"} {
		if a, b := ours.header.Get(name), other.header.Get(name); a != b {
			t.Errorf("%s = %q, the SDK's is %q", name, a, b)
		}
	}
	var a, b any
	json.Unmarshal(ours.raw, &a)
	json.Unmarshal(other.raw, &b)
	// The SDK leaves out a delay of 0, which is the queue's default only if nobody has set another.
	delete(a.(map[string]any)["Entries"].([]any)[1].(map[string]any), "DelaySeconds")
	if !reflect.DeepEqual(a, b) {
		t.Errorf("our request\n%s\nmeans something else than the SDK's\n%s", ours.raw, other.raw)
	}
}
