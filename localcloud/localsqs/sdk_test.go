package localsqs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
)

// The SDK's typed errors have to come out, and the codes that it takes from the query header.
func TestSDKSeesTypedErrors(t *testing.T) {
	s := New(Options{})
	s.CreateQueue("q", nil)
	s.CreateQueue("small", map[string]string{"MaximumMessageSize": "1024"})
	base := serve(t, s)
	client := sdk(t, base)
	url := QueueURL(base, "q")
	batch := func(url string, entries ...types.SendMessageBatchRequestEntry) func() error {
		return func() error {
			_, err := client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(url), Entries: entries})
			return err
		}
	}
	entry := func(id, body string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: aws.String(id), MessageBody: aws.String(body)}
	}
	send := func(in *sqs.SendMessageInput) func() error {
		return func() error { _, err := client.SendMessage(t.Context(), in); return err }
	}
	half := strings.Repeat("x", 600_000)
	var eleven []types.SendMessageBatchRequestEntry
	for i := range 11 {
		eleven = append(eleven, entry(fmt.Sprint(i), "x"))
	}
	for _, c := range []struct {
		name string
		do   func() error
		is   func(error) bool // the SDK's type; nil where it has none
		code string
	}{
		{"a missing queue", batch(QueueURL(base, "nope"), entry("0", "x")), is[*types.QueueDoesNotExist], "AWS.SimpleQueueService.NonExistentQueue"},
		{"a batch too long", batch(url, entry("0", half), entry("1", half)), is[*types.BatchRequestTooLong], "AWS.SimpleQueueService.BatchRequestTooLong"},
		{"an empty batch", batch(url, []types.SendMessageBatchRequestEntry{}...), is[*types.EmptyBatchRequest], "AWS.SimpleQueueService.EmptyBatchRequest"},
		{"too many", batch(url, eleven...), is[*types.TooManyEntriesInBatchRequest], "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"},
		{"the same id", batch(url, entry("0", "x"), entry("0", "y")), is[*types.BatchEntryIdsNotDistinct], "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
		{"a bad id", batch(url, entry("a b", "x")), is[*types.InvalidBatchEntryId], "AWS.SimpleQueueService.InvalidBatchEntryId"},
		{"bad characters", send(&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("\x0b")}), is[*types.InvalidMessageContents], "InvalidMessageContents"},
		{"too long", send(&sqs.SendMessageInput{QueueUrl: aws.String(QueueURL(base, "small")), MessageBody: aws.String(half)}), nil, "InvalidParameterValue"},
		{"an empty body", send(&sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("")}), nil, "MissingParameter"},
		{"a bad URL", send(&sqs.SendMessageInput{QueueUrl: aws.String("q"), MessageBody: aws.String("x")}), is[*types.InvalidAddress], "InvalidAddress"},
		{"a bad handle", func() error {
			_, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: aws.String("x")})
			return err
		}, is[*types.ReceiptHandleIsInvalid], "ReceiptHandleIsInvalid"},
		{"an unknown attribute", func() error {
			_, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"Size"}})
			return err
		}, is[*types.InvalidAttributeName], "InvalidAttributeName"},
		{"an attribute out of bounds", func() error {
			_, err := client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"MaximumMessageSize": "1048577"}})
			return err
		}, is[*types.InvalidAttributeValue], "InvalidAttributeValue"},
		{"a name that is taken", func() error {
			_, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: map[string]string{"DelaySeconds": "9"}})
			return err
		}, is[*types.QueueNameExists], "QueueAlreadyExists"},
		{"a FIFO queue without the suffix", func() error {
			_, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("z"), Attributes: map[string]string{"FifoQueue": "true"}})
			return err
		}, is[*types.InvalidAttributeName], "InvalidAttributeName"},
		{"another region", func() error {
			_, err := sdk(t, base, func(o *sqs.Options) { o.Region = "eu-west-1" }).ListQueues(t.Context(), &sqs.ListQueuesInput{})
			return err
		}, nil, "SignatureDoesNotMatch"},
		{"an unknown key", func() error {
			_, err := sdk(t, base, func(o *sqs.Options) {
				o.Credentials = credentials.NewStaticCredentialsProvider("AKIA", "x", "")
			}).ListQueues(t.Context(), &sqs.ListQueuesInput{})
			return err
		}, nil, "InvalidClientTokenId"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.do()
			if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != c.code {
				t.Errorf("got %v, want code %s", err, c.code)
			}
			if c.is != nil && !c.is(err) {
				t.Errorf("%T is not the SDK's type for it: %v", errors.Unwrap(err), err)
			}
		})
	}
}

func is[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

// Every script dialect, as the SDK reads it; where it can't, a code of its own.
func TestSDKReadsScriptedErrors(t *testing.T) {
	for dialect, want := range map[localcloud.Dialect]string{
		localcloud.Namespace:    "AWS.SimpleQueueService.NonExistentQueue",
		localcloud.Bare:         "QueueDoesNotExist",
		localcloud.Older:        "AWS.SimpleQueueService.NonExistentQueue",
		localcloud.HeaderOnly:   "AWS.SimpleQueueService.NonExistentQueue",
		localcloud.Coral:        "QueueDoesNotExist",
		localcloud.UpperMessage: "QueueDoesNotExist",
		localcloud.CodeField:    "QueueDoesNotExist",
	} {
		s := New(Options{AutoCreate: true})
		base := serve(t, s)
		s.Faults.Add(localcloud.Fault{Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Code: "QueueDoesNotExist", Dialect: dialect}}})
		_, err := sdk(t, base).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(QueueURL(base, "q")), MessageBody: aws.String("x")})
		if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != want {
			t.Errorf("dialect %d: got %v, want code %s", dialect, err, want)
		}
		if n := s.Stats("q").Refused["AWS.SimpleQueueService.NonExistentQueue"]; n != 1 {
			t.Errorf("dialect %d: %d refusals counted, want 1", dialect, n)
		}
	}
}

// The SDK checks the MD5s of bodies itself, so a wrong one has to reach it, and a right one has to
// satisfy it.
func TestSDKNoticesWrongMD5(t *testing.T) {
	s := New(Options{AutoCreate: true})
	base := serve(t, s)
	s.Faults.Add(localcloud.Fault{Action: "SendMessage", Nth: 1, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{Do: localcloud.WrongMD5}}}})
	in := &sqs.SendMessageInput{QueueUrl: aws.String(QueueURL(base, "q")), MessageBody: aws.String("x")}
	client := sdk(t, base)
	if _, err := client.SendMessage(t.Context(), in); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("first send: %v, want a checksum error", err)
	}
	if _, err := client.SendMessage(t.Context(), in); err != nil {
		t.Errorf("second send: %v", err)
	}
}

func TestQueueAdministration(t *testing.T) {
	s := New(Options{})
	base := serve(t, s)
	client := sdk(t, base)
	for range 2 { // creating is idempotent
		out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q.fifo"), Attributes: map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}})
		if err != nil || *out.QueueUrl != QueueURL(base, "q.fifo") {
			t.Fatalf("CreateQueue = %v, %v", out, err)
		}
	}
	url, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q.fifo")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("other")}); !is[*types.QueueDoesNotExist](err) {
		t.Errorf("GetQueueUrl of a missing queue: %v", err)
	}
	if _, err := client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: url.QueueUrl, Attributes: map[string]string{"MaximumMessageSize": "2048"}}); err != nil {
		t.Fatal(err)
	}
	attrs, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url.QueueUrl, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"MaximumMessageSize": "2048", "FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "30",
		"QueueArn": "arn:aws:sqs:us-east-1:000000000000:q.fifo", "ApproximateNumberOfMessages": "0",
	} {
		if got := attrs.Attributes[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	s.CreateQueue("plain", nil)
	one, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(QueueURL(base, "plain")), AttributeNames: []types.QueueAttributeName{"MaximumMessageSize", "FifoQueue"}})
	if err != nil || len(one.Attributes) != 1 || one.Attributes["MaximumMessageSize"] != "1048576" {
		t.Errorf("attributes of a standard queue = %v, %v, want only its MaximumMessageSize", one.Attributes, err)
	}
	list, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("q")})
	if err != nil || !slices.Equal(list.QueueUrls, []string{QueueURL(base, "q.fifo")}) {
		t.Errorf("ListQueues = %v, %v", list.QueueUrls, err)
	}
	if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String("x"), MessageGroupId: aws.String("g")}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: url.QueueUrl}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Messages("q.fifo")); n != 0 {
		t.Errorf("%d messages after a purge", n)
	}
}
