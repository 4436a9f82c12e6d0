package localpubsub

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	rest "google.golang.org/api/pubsub/v1"
)

// Google's generated REST client as an independent reader: it knows nothing of this module.
func TestGooglesClientLibraryIsUnderstood(t *testing.T) {
	p := New(Options{})
	c := serve(t, p)
	service, err := rest.NewService(t.Context(), option.WithEndpoint(c.base+"/"), option.WithHTTPClient(c.client))
	if err != nil {
		t.Fatal(err)
	}
	topics, subs := service.Projects.Topics, service.Projects.Subscriptions
	topic, sub := TopicPath("local", "hooks"), SubscriptionPath("local", "sub")

	publish := &rest.PublishRequest{Messages: []*rest.PubsubMessage{
		{Data: base64.StdEncoding.EncodeToString([]byte("hello")), Attributes: map[string]string{"a": "b"}, OrderingKey: "k"},
		{Data: base64.URLEncoding.EncodeToString([]byte{0xfb, 0xff}), OrderingKey: "k"},
	}}
	var refused *googleapi.Error
	if _, err := topics.Publish(topic, publish).Do(); !errors.As(err, &refused) || refused.Code != 404 || refused.Message != "Resource not found (resource=hooks)." {
		t.Errorf("publish to no topic = %v, want 404 with its text", err)
	}
	if _, err := topics.Create(topic, &rest.Topic{}).Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := subs.Create(sub, &rest.Subscription{Topic: topic, AckDeadlineSeconds: 30, EnableMessageOrdering: true}).Do(); err != nil {
		t.Fatal(err)
	}
	sent, err := topics.Publish(topic, publish).Do()
	if err != nil || len(sent.MessageIds) != 2 {
		t.Fatalf("publish = %+v, %v, want two ids", sent, err)
	}
	got, err := subs.Pull(sub, &rest.PullRequest{MaxMessages: 10, ReturnImmediately: true}).Do()
	if err != nil || len(got.ReceivedMessages) != 2 {
		t.Fatalf("pull = %+v, %v, want two messages", got, err)
	}
	var acks []string
	for i, r := range got.ReceivedMessages {
		acks = append(acks, r.AckId)
		if r.Message.MessageId != sent.MessageIds[i] || r.Message.OrderingKey != "k" || r.Message.PublishTime == "" {
			t.Errorf("message %d = %+v", i, r.Message)
		}
	}
	if d := got.ReceivedMessages; d[0].Message.Data != "aGVsbG8=" || d[0].Message.Attributes["a"] != "b" || d[1].Message.Data != "+/8=" {
		t.Errorf("pulled %+v and %+v", d[0].Message, d[1].Message)
	}
	if _, err := subs.ModifyAckDeadline(sub, &rest.ModifyAckDeadlineRequest{AckIds: acks, AckDeadlineSeconds: 60}).Do(); err != nil {
		t.Error(err)
	}
	if _, err := subs.Acknowledge(sub, &rest.AcknowledgeRequest{AckIds: acks}).Do(); err != nil {
		t.Error(err)
	}
	list, err := topics.Subscriptions.List(topic).Do()
	if err != nil || fmt.Sprint(list.Subscriptions) != "["+sub+"]" {
		t.Errorf("subscriptions of the topic = %+v, %v", list, err)
	}
	permitted, err := topics.TestIamPermissions(topic, &rest.TestIamPermissionsRequest{Permissions: []string{"pubsub.topics.publish"}}).Do()
	if err != nil || len(permitted.Permissions) != 1 {
		t.Errorf("permissions = %+v, %v", permitted, err)
	}
	if all, err := topics.List("projects/local").Do(); err != nil || len(all.Topics) != 1 || all.Topics[0].Name != topic {
		t.Errorf("topics = %+v, %v", all, err)
	}
	if all, err := subs.List("projects/local").Do(); err != nil || len(all.Subscriptions) != 1 || all.Subscriptions[0].AckDeadlineSeconds != 30 {
		t.Errorf("subscriptions = %+v, %v", all, err)
	}
	if _, err := subs.Delete(sub).Do(); err != nil {
		t.Error(err)
	}
	if _, err := topics.Delete(topic).Do(); err != nil {
		t.Error(err)
	}
}
