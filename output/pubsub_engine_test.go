package output_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	gcp "cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/message"
)

// A thousand hooks, and the topic's schema refuses number 617, which only the server knows.
func TestOneRefusedOfAThousand(t *testing.T) {
	const n = 1000
	p := newPipeline(t, newScript(numbered(n)))
	must(t, p.pubsub.CreateTopic("hooks", localpubsub.TopicOptions{Reject: func(m *localpubsub.StoredMessage) bool {
		return m.Attributes["ankusa_id"] == "id-617"
	}}))
	p.run(fallback(p.pubsubYAML("hooks", "")))
	seen := map[string]int{}
	for _, m := range p.pubsub.Published("hooks") {
		seen[m.Attributes["ankusa_id"]]++
	}
	if len(seen) != n-1 || seen["id-617"] != 0 {
		t.Errorf("%d different hooks stored, want %d without id-617", len(seen), n-1)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s is stored %d times", id, times)
		}
	}
	if len(p.sink.got) != 1 || p.sink.got[0] != "617" || !strings.HasPrefix(p.sink.errs[0], "permanent: pubsub 400 INVALID_ARGUMENT") {
		t.Errorf("the fallback got %q with %q, want 617 and permanent", p.sink.got, p.sink.errs)
	}
	// One request would have carried them all.
	extra, limit := p.pubsub.Stats("hooks").Requests-1, int(2*math.Log2(n))+1
	t.Logf("%d extra requests", extra)
	if extra > limit {
		t.Errorf("%d extra requests, want at most %d", extra, limit)
	}
	if p.script.ackedCount() != n {
		t.Errorf("%d acked, want all %d: the fallback took the refused one", p.script.ackedCount(), n)
	}
}

// The same thousand into Google's own emulator, read back by Google's own client.
func TestAThousandArriveInTheEmulator(t *testing.T) {
	const n = 1000
	addr := strings.TrimPrefix(peers.PubSubEmulator(t), "http://")
	ctx := t.Context()
	reader, err := gcp.NewClient(ctx, "acme-test", option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())), option.WithTelemetryDisabled())
	must(t, err)
	defer reader.Close()
	const topic, subscription = "projects/acme-test/topics/hooks", "projects/acme-test/subscriptions/hooks"
	_, err = reader.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic})
	must(t, err)
	_, err = reader.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscription, Topic: topic})
	must(t, err)

	hooks := numbered(n)
	p := newPipeline(t, newScript(hooks))
	p.run(fmt.Sprintf("ankusa_pubsub: { project: acme-test, topic: hooks, endpoint: 'http://%s', timeout: 30s }", addr))
	if p.script.ackedCount() != n {
		t.Fatalf("%d acked, want %d; log:\n%s", p.script.ackedCount(), n, p.logs)
	}

	got := map[string]*pubsubpb.PubsubMessage{}
	for tries := 0; len(got) < n && tries < 100; tries++ {
		reply, err := reader.SubscriptionAdminClient.Pull(ctx, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: 1000})
		must(t, err)
		var acks []string
		for _, m := range reply.ReceivedMessages {
			got[m.Message.Attributes["ankusa_id"]] = m.Message
			acks = append(acks, m.AckId)
		}
		if len(acks) > 0 {
			must(t, reader.SubscriptionAdminClient.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: acks}))
		}
	}
	for i, h := range hooks {
		want := message.Hook{ID: h.meta["ankusa_id"], SourceID: "test", ReceivedAt: int64(1737500000000 + i), Body: []byte(h.body)}
		m := got[want.ID]
		if m == nil {
			t.Fatalf("%s has not arrived", want.ID)
		}
		if string(m.Data) != string(want.AppendTo(nil)) {
			t.Errorf("%s: data %q, want %q", want.ID, m.Data, want.AppendTo(nil))
		}
		attributes := want.AppendAttributes(nil)
		if len(m.Attributes) != len(attributes) {
			t.Errorf("%s: attributes %v, want %v", want.ID, m.Attributes, attributes)
		}
		for _, a := range attributes {
			if m.Attributes[a.Name] != a.Value {
				t.Errorf("%s: attribute %s = %q, want %q", want.ID, a.Name, m.Attributes[a.Name], a.Value)
			}
		}
	}
}

// A consumer can't tell which cloud, or which output, a message came through.
func TestBothOutputsPublishTheSameBytes(t *testing.T) {
	hooks := numbered(20)
	hooks[3].meta["X-Github-Event"] = "push"
	hooks[4].body = "\xff\x00 not text"
	hooks[5].meta["ankusa_tenant_id"] = "acme"
	hooks[6].meta["ankusa_dedupe_key"] = "evt ☃ \u2028 <>&\""
	p := newPipeline(t, newScript(hooks))
	p.run("broker:\n  pattern: fan_out\n  outputs:\n    - " + strings.ReplaceAll(strings.TrimSpace(p.sqsYAML("hooks", "")), "\n", "\n      ") +
		"\n    - " + strings.ReplaceAll(strings.TrimSpace(p.pubsubYAML("hooks", "")), "\n", "\n      "))
	sqs := map[string]string{}
	for _, m := range p.sqs.Messages("hooks") {
		sqs[m.Attributes["ankusa_id"]] = m.Body
		for name, kind := range m.AttributeTypes {
			if kind != "String" {
				t.Errorf("attribute %s has type %s", name, kind)
			}
		}
	}
	published := p.pubsub.Published("hooks")
	if len(sqs) != len(hooks) || len(published) != len(hooks) {
		t.Fatalf("%d in SQS, %d in Pub/Sub, want %d in each", len(sqs), len(published), len(hooks))
	}
	for _, m := range published {
		if id := m.Attributes["ankusa_id"]; sqs[id] != string(m.Data) {
			t.Errorf("%s: SQS has %q, Pub/Sub has %q", id, sqs[id], m.Data)
		}
	}
}
