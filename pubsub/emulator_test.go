package pubsub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gcp "cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/internal/peers"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// emulator starts Google's emulator and returns host:port.
func emulator(t *testing.T) string {
	t.Helper()
	return strings.TrimPrefix(peers.PubSubEmulator(t), "http://")
}

// The emulator takes what we send, and Google's own client reads back what we meant.
func TestEmulatorAndOfficialClientAgreeWithUs(t *testing.T) {
	addr := emulator(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	peer, err := gcp.NewClient(ctx, "acme-test", option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())), option.WithTelemetryDisabled())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	const name = "projects/acme-test/topics/hooks"
	if _, err := peer.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: name}); err != nil {
		t.Fatal(err)
	}
	const subscription = "projects/acme-test/subscriptions/hooks"
	if _, err := peer.SubscriptionAdminClient.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscription, Topic: name, EnableMessageOrdering: true}); err != nil {
		t.Fatal(err)
	}

	w := wire.New(wire.Options{Service: "pubsub", Timeout: 30 * time.Second})
	defer w.Close()
	endpoint, err := ResolveEndpoint("", env(EmulatorVariable, addr))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Project: "acme-test", Endpoint: endpoint.URL, Wire: w})
	if err != nil {
		t.Fatal(err)
	}

	awkward := "\"\\/\b\f\n\r\t\x00\x1f<>&é\u2028\U0001F600\ufffe"
	msgs := []Message{
		{Data: []byte{0x7b, 0xe9, 0x00, 0xff}, Attributes: []Attribute{{"n", "binary"}}},
		{Data: []byte("x"), Attributes: []Attribute{{"n", "awkward"}, {awkward, awkward}}},
		{Attributes: []Attribute{{"n", "no data"}, {"empty", ""}}},
		{Data: bytes.Repeat([]byte("0123456789"), 700_000), Attributes: []Attribute{{"n", "large"}}},
	}
	for i := range 1200 {
		msgs = append(msgs, Message{Data: fmt.Appendf(nil, "%d", i), Attributes: []Attribute{{"n", fmt.Sprint("key ", i)}}, OrderingKey: "acme/é\""})
	}
	if failed := failures(c.Publish(ctx, "hooks", msgs)); len(failed) != 0 {
		t.Fatalf("failures: %v", failed)
	}

	receive, done := context.WithCancel(ctx)
	defer done()
	var mu sync.Mutex
	got := map[string]*gcp.Message{}
	var order []string
	err = peer.Subscriber(subscription).Receive(receive, func(_ context.Context, m *gcp.Message) {
		m.Ack()
		mu.Lock()
		defer mu.Unlock()
		got[m.Attributes["n"]] = m
		if m.OrderingKey != "" {
			order = append(order, string(m.Data))
		}
		if len(got) == len(msgs) {
			done()
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i := range msgs {
		m := got[msgs[i].Attributes[0].Value]
		if m == nil {
			t.Fatalf("message %d did not arrive (%d of %d did)", i, len(got), len(msgs))
		}
		if !bytes.Equal(m.Data, msgs[i].Data) || m.OrderingKey != msgs[i].OrderingKey || len(m.Attributes) != len(msgs[i].Attributes) {
			t.Errorf("message %d arrived as %.100q %v %q", i, m.Data, m.Attributes, m.OrderingKey)
		}
		for _, a := range msgs[i].Attributes {
			if v, ok := m.Attributes[a.Name]; !ok || v != a.Value {
				t.Errorf("message %d: attribute %q arrived as %q, want %q", i, a.Name, v, a.Value)
			}
		}
	}
	if !slices.IsSortedFunc(order, func(a, b string) int { return atoi(a) - atoi(b) }) {
		t.Error("the key's messages arrived out of order")
	}

	// Refusals, in the emulator's own words.
	for topic, want := range map[string]string{
		"missing":  "config: pubsub 404 NOT_FOUND: check project and topic",
		"1-letter": "config: pubsub 400 INVALID_ARGUMENT: check project and topic", // and not bisected
	} {
		requests := 0
		c.opts.Observe = func(Observation) { requests++ }
		for i, err := range c.Publish(ctx, topic, named(100, "")) {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("topic %s, message %d: %v, want %s…", topic, i, err, want)
				break
			}
		}
		if requests != 1 {
			t.Errorf("topic %s: %d requests, want 1", topic, requests)
		}
	}
	// A message that only the server refuses is found. Ours are never empty; this one is slipped in.
	var requests int
	c.opts.Observe = func(Observation) { requests++ }
	p := &publication{client: c, url: c.base + "/v1/projects/acme-test/topics/hooks:publish"}
	refused := named(1000, "")
	refused[617] = Message{}
	errs := make([]error, len(refused))
	p.send(ctx, refused, errs)
	for i, err := range errs {
		if (err != nil) != (i == 617) || err != nil && classify.Of(err).Class != classify.Permanent {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if requests > 21 {
		t.Errorf("%d requests to find one of 1000, want at most 21", requests)
	}
}
