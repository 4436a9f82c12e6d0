package localsqs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/ankusa-connect/ankusa-connect/internal/peers"
)

// The suite speaks through the AWS SDK's client only, so it runs against anything that is SQS. It is
// why localsqs may be believed: where a peer differs, the difference is listed with its reason, and a
// listed difference that is none any more fails the test.
//
// Peers are those of package internal/peers, and whatever ANKUSA_SQS_PEER names by its address, asked
// with the default region and keys of this package.

// conformance is one case: a send to a fresh queue and what comes of it.
type conformance struct {
	name string
	fifo bool
	// queue attributes beyond FifoQueue
	attributes map[string]string
	run        func(t *testing.T, c *sqs.Client, url string) string // "" or the error's code
	want       string
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService.")
	}
	return "not an API error: " + err.Error()
}

func sendCase(change func(*sqs.SendMessageInput)) func(*testing.T, *sqs.Client, string) string {
	return func(t *testing.T, c *sqs.Client, url string) string {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x")}
		change(in)
		_, err := c.SendMessage(t.Context(), in)
		return codeOf(err)
	}
}

// batchCase sends n entries of the given size; "Failed:code" is a failed entry.
func batchCase(n, size int, change func(i int, e *types.SendMessageBatchRequestEntry)) func(*testing.T, *sqs.Client, string) string {
	return func(t *testing.T, c *sqs.Client, url string) string {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}}
		for i := range n {
			e := types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(strings.Repeat("x", size))}
			if change != nil {
				change(i, &e)
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := c.SendMessageBatch(t.Context(), in)
		if err != nil {
			return codeOf(err)
		}
		if len(out.Successful)+len(out.Failed) != n {
			return fmt.Sprintf("%d successful and %d failed of %d", len(out.Successful), len(out.Failed), n)
		}
		if len(out.Failed) > 0 {
			return "Failed:" + *out.Failed[0].Code
		}
		return ""
	}
}

func attr(kind, value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &kind, StringValue: &value}
}

func suite() []conformance {
	attrs := func(a map[string]types.MessageAttributeValue) func(*sqs.SendMessageInput) {
		return func(in *sqs.SendMessageInput) { in.MessageAttributes = a }
	}
	body := func(b string) func(*sqs.SendMessageInput) {
		return func(in *sqs.SendMessageInput) { in.MessageBody = &b }
	}
	group := func(g, d string) func(*sqs.SendMessageInput) {
		return func(in *sqs.SendMessageInput) { in.MessageGroupId, in.MessageDeduplicationId = &g, &d }
	}
	eleven := map[string]types.MessageAttributeValue{}
	for i := range 11 {
		eleven[fmt.Sprintf("a%d", i)] = attr("String", "v")
	}
	const mib = 1_048_576
	return []conformance{
		{name: "a message", run: sendCase(body("hello"))},
		{name: "every allowed kind of character", run: sendCase(body("\t\n\r \u007f\u0085\ud7ff\ue000\ufffd\U00010000\U0001f600"))},
		{name: "U+0000", run: sendCase(body("a\x00b")), want: "InvalidMessageContents"},
		{name: "U+FFFE", run: sendCase(body("a\ufffeb")), want: "InvalidMessageContents"},
		{name: "U+FFFF", run: sendCase(body("a\uffffb")), want: "InvalidMessageContents"},
		{name: "an empty body", run: sendCase(body("")), want: "MissingParameter"},
		{name: "a MiB", run: sendCase(body(strings.Repeat("x", mib)))},
		{name: "a MiB and a byte", run: sendCase(body(strings.Repeat("x", mib+1))), want: "InvalidParameterValue"},
		{name: "a MiB with an attribute", run: sendCase(func(in *sqs.SendMessageInput) {
			in.MessageBody = aws.String(strings.Repeat("x", mib))
			in.MessageAttributes = map[string]types.MessageAttributeValue{"n": attr("String", "v")}
		}), want: "InvalidParameterValue"},
		{name: "above the queue's own limit", attributes: map[string]string{"MaximumMessageSize": "1024"}, run: sendCase(body(strings.Repeat("é", 513))), want: "InvalidParameterValue"},
		{name: "ten attributes and more", run: sendCase(attrs(eleven)), want: "InvalidParameterValue"},
		{name: "an empty attribute value", run: sendCase(attrs(map[string]types.MessageAttributeValue{"a": attr("String", "")})), want: "InvalidParameterValue"},
		{name: "an unknown attribute type", run: sendCase(attrs(map[string]types.MessageAttributeValue{"a": attr("Text", "v")})), want: "InvalidParameterValue"},
		{name: "attributes of each type", run: sendCase(attrs(map[string]types.MessageAttributeValue{
			"s": attr("String", "v"), "n": attr("Number", "12"), "l": attr("String.json", "{}"),
			"b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		}))},
		{name: "a delay of 900", run: sendCase(func(in *sqs.SendMessageInput) { in.DelaySeconds = 900 })},
		{name: "a delay of 901", run: sendCase(func(in *sqs.SendMessageInput) { in.DelaySeconds = 901 }), want: "InvalidParameterValue"},
		{name: "a group id on a standard queue", run: sendCase(func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String("tenant") })},
		{name: "a deduplication id on a standard queue", run: sendCase(func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String("d") }), want: "InvalidParameterValue"},
		{name: "FIFO", fifo: true, run: sendCase(group("acme/stripe", "id:replay:1"))},
		{name: "FIFO, ids of 128", fifo: true, run: sendCase(group(strings.Repeat("g", 128), strings.Repeat("d", 128)))},
		{name: "FIFO, a group of 129", fifo: true, run: sendCase(group(strings.Repeat("g", 129), "d")), want: "InvalidParameterValue"},
		{name: "FIFO, a group with a space", fifo: true, run: sendCase(group("a b", "d")), want: "InvalidParameterValue"},
		{name: "FIFO without a group", fifo: true, run: sendCase(func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String("d") }), want: "MissingParameter"},
		{name: "FIFO without a deduplication id", fifo: true, run: sendCase(func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String("g") }), want: "InvalidParameterValue"},
		{name: "FIFO with a delay", fifo: true, run: sendCase(func(in *sqs.SendMessageInput) {
			group("g", "d")(in)
			in.DelaySeconds = 5
		}), want: "InvalidParameterValue"},

		{name: "a batch of ten", run: batchCase(10, 10, nil)},
		{name: "an empty batch", run: batchCase(0, 0, nil), want: "EmptyBatchRequest"},
		{name: "a batch of eleven", run: batchCase(11, 10, nil), want: "TooManyEntriesInBatchRequest"},
		{name: "a batch with an id twice", run: batchCase(2, 1, func(_ int, e *types.SendMessageBatchRequestEntry) { e.Id = aws.String("same") }), want: "BatchEntryIdsNotDistinct"},
		{name: "a batch with a bad id", run: batchCase(1, 1, func(_ int, e *types.SendMessageBatchRequestEntry) { e.Id = aws.String("a/b") }), want: "InvalidBatchEntryId"},
		{name: "a batch of a MiB", run: batchCase(2, mib/2, nil)},
		{name: "a batch above a MiB", run: batchCase(2, mib/2+1, nil), want: "BatchRequestTooLong"},
		{name: "a batch above a MiB by an attribute", run: batchCase(2, mib/2, func(i int, e *types.SendMessageBatchRequestEntry) {
			if i == 0 {
				e.MessageAttributes = map[string]types.MessageAttributeValue{"n": attr("String", "v")}
			}
		}), want: "BatchRequestTooLong"},
		{name: "a batch with one bad entry", run: batchCase(3, 1, func(i int, e *types.SendMessageBatchRequestEntry) {
			if i == 1 {
				e.DelaySeconds = 901
			}
		}), want: "Failed:InvalidParameterValue"},
		{name: "a FIFO batch with an entry without a group", fifo: true, run: batchCase(2, 1, func(i int, e *types.SendMessageBatchRequestEntry) {
			if e.MessageDeduplicationId = aws.String(fmt.Sprint(i)); i == 1 {
				e.MessageGroupId = aws.String("g")
			}
		}), want: "MissingParameter"},
		{name: "a missing queue", run: func(t *testing.T, c *sqs.Client, url string) string {
			url += "-that-is-missing"
			_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x")})
			if err != nil && !is[*types.QueueDoesNotExist](err) {
				return "not the SDK's type: " + err.Error()
			}
			return codeOf(err)
		}, want: "NonExistentQueue"},
		{name: "round trip", run: roundTrip},
		{name: "FIFO order and deduplication", fifo: true, run: fifoRoundTrip},
		{name: "the queue's attributes", attributes: map[string]string{"MaximumMessageSize": "2048"}, run: func(t *testing.T, c *sqs.Client, url string) string {
			out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"MaximumMessageSize", "QueueArn"}})
			if err != nil {
				return codeOf(err)
			}
			if out.Attributes["MaximumMessageSize"] != "2048" || !strings.HasPrefix(out.Attributes["QueueArn"], "arn:aws:sqs:") {
				return fmt.Sprint(out.Attributes)
			}
			return ""
		}},
	}
}

// roundTrip sends a body and attributes and gets the same back; the SDK checks the bodies' MD5s, the
// attributes' are compared with our own calculation, so that a peer judges it.
func roundTrip(t *testing.T, c *sqs.Client, url string) string {
	const body = "{\"a\":\"é\\\" \u2028<&>\"}"
	sent := map[string]types.MessageAttributeValue{
		"ankusa_id": attr("String", "ü"), "n": attr("Number.int", "42"), "b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
	}
	out, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(body), MessageAttributes: sent})
	if err != nil {
		return codeOf(err)
	}
	want := attributesMD5([]attribute{
		{name: "n", dataType: "Number.int", value: "42"}, {name: "ankusa_id", dataType: "String", value: "ü"}, {name: "b", dataType: "Binary", value: "\x00\x01\xff"},
	})
	if got := aws.ToString(out.MD5OfMessageAttributes); got != want {
		return "MD5 of attributes " + got + ", want " + want
	}
	in, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, WaitTimeSeconds: 5})
	if err != nil {
		return codeOf(err)
	}
	if len(in.Messages) != 1 || *in.Messages[0].Body != body {
		return fmt.Sprintf("received %d messages, or another body", len(in.Messages))
	}
	got := in.Messages[0]
	if len(got.MessageAttributes) != 3 || *got.MessageAttributes["ankusa_id"].StringValue != "ü" || !slices.Equal(got.MessageAttributes["b"].BinaryValue, []byte{0, 1, 255}) {
		return fmt.Sprintf("attributes %v", got.MessageAttributes)
	}
	if got.Attributes["ApproximateReceiveCount"] != "1" || got.Attributes["SentTimestamp"] == "" {
		return fmt.Sprintf("system attributes %v", got.Attributes)
	}
	if _, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: got.ReceiptHandle}); err != nil {
		return codeOf(err)
	}
	return ""
}

func fifoRoundTrip(t *testing.T, c *sqs.Client, url string) string {
	send := func(from int) ([]types.SendMessageBatchResultEntry, error) {
		in := &sqs.SendMessageBatchInput{QueueUrl: &url}
		for i := from; i < 10; i++ {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
				Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(fmt.Sprint(i)), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(fmt.Sprint("d", i)),
			})
		}
		out, err := c.SendMessageBatch(t.Context(), in)
		if err != nil {
			return nil, err
		}
		return out.Successful, nil
	}
	first, err := send(0)
	if err != nil {
		return codeOf(err)
	}
	for i := 1; i < len(first); i++ {
		if a, b := *first[i-1].SequenceNumber, *first[i].SequenceNumber; len(a) > len(b) || len(a) == len(b) && a >= b {
			return "sequence numbers do not grow: " + a + ", " + b
		}
	}
	again, err := send(5)
	if err != nil {
		return codeOf(err)
	}
	if len(first) != 10 || len(again) != 5 || *again[0].MessageId != *first[5].MessageId {
		return "a duplicate is not answered as its original"
	}
	var bodies strings.Builder
	for range 12 {
		in, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 3})
		if err != nil {
			return codeOf(err)
		}
		if len(in.Messages) == 0 {
			break
		}
		other, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
		if err != nil {
			return codeOf(err)
		}
		if len(other.Messages) != 0 {
			return "the group is not locked"
		}
		del := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
		for i, m := range in.Messages {
			bodies.WriteString(*m.Body)
			del.Entries = append(del.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle})
		}
		if out, err := c.DeleteMessageBatch(t.Context(), del); err != nil || len(out.Failed) > 0 {
			return "delete: " + codeOf(err)
		}
	}
	if bodies.String() != "0123456789" {
		return "received " + bodies.String()
	}
	return ""
}

// anyFailure stands for a difference whose text varies.
const anyFailure = "any other answer"

// conform runs the suite; differences are the known ones of a peer: what it answers instead.
func conform(t *testing.T, client *sqs.Client, differences map[string]string) {
	for i, c := range suite() {
		t.Run(c.name, func(t *testing.T) {
			name, attributes := fmt.Sprintf("conformance-%d-%d", time.Now().UnixNano(), i), map[string]string{}
			maps.Copy(attributes, c.attributes)
			if c.fifo {
				name += ".fifo"
				attributes["FifoQueue"] = "true"
			}
			q, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			d, differs := differences[c.name]
			if differs {
				want = d
			}
			got := c.run(t, client, *q.QueueUrl)
			if want == anyFailure && got != "" && got != c.want {
				return
			}
			if got != want {
				t.Errorf("got %q, want %q (known difference: %v)", got, want, differs)
			}
		})
	}
}

func TestConformance(t *testing.T) {
	conform(t, sdk(t, serve(t, New(Options{}))), nil)
}

// sqsPeers are other implementations. Each listed difference is what the peer was seen to answer, and
// the comment above it is our guess at why; localsqs follows the API reference.
var sqsPeers = []struct {
	name        string
	start       func(testing.TB) string
	differences map[string]string
}{
	{
		name:  "fauxqs",
		start: peers.Fauxqs,
		differences: map[string]string{
			// It fails the one entry, where the service has been seen to refuse the request.
			"a FIFO batch with an entry without a group": "Failed:MissingParameter",
			// Its characters are UTF-16 code units, so it refuses all above U+FFFF.
			"every allowed kind of character": "InvalidMessageContents",
			// It has no rules for these.
			"ten attributes and more":                "",
			"an empty attribute value":               "",
			"an unknown attribute type":              "",
			"a delay of 901":                         "",
			"a batch with one bad entry":             "",
			"a deduplication id on a standard queue": "",
			"FIFO, a group of 129":                   "",
			"FIFO, a group with a space":             "",
		},
	},
	{
		name:  "moto",
		start: peers.Moto,
		differences: map[string]string{
			// It has no rules for these.
			"U+0000":                                 "",
			"U+FFFE":                                 "",
			"U+FFFF":                                 "",
			"an empty body":                          "",
			"ten attributes and more":                "",
			"an empty attribute value":               "",
			"a deduplication id on a standard queue": "",
			"FIFO, a group of 129":                   "",
			"FIFO, a group with a space":             "",
			"above the queue's own limit":            "",
			// It counts bodies only.
			"a MiB with an attribute":             "",
			"a batch above a MiB by an attribute": "",
			// It writes SenderFault as a string, which the SDK can't read.
			"a batch with one bad entry": anyFailure,
			// Its sequence numbers are random.
			"FIFO order and deduplication": anyFailure,
		},
	},
}

func TestConformanceOfPeers(t *testing.T) {
	if testing.Short() && !peers.IsRequired("fauxqs") {
		t.Skip("starts other programs")
	}
	for _, p := range sqsPeers {
		t.Run(p.name, func(t *testing.T) {
			base := p.start(t)
			// fauxqs announces its queues under a host name of its own, which the SDK does not dial: it
			// always talks to the endpoint.
			conform(t, sdk(t, base), p.differences)
		})
	}
	if base := os.Getenv("ANKUSA_SQS_PEER"); base != "" {
		t.Run("named", func(t *testing.T) { conform(t, sdk(t, base), nil) })
	}
}
