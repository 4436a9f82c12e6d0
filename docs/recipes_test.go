package docs_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/message"
	"github.com/ankusa-connect/ankusa-connect/output"
)

// withInput is a block's configuration with another input.
func withInput(t *testing.T, b block, input map[string]any) string {
	t.Helper()
	var conf map[string]any
	if err := yaml.Unmarshal([]byte(b.text), &conf); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if conf["input"] == nil {
		t.Fatalf("%s has no input to replace", b)
	}
	conf["input"] = input
	out, err := yaml.Marshal(conf)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// recorded is a batched input: it hands out the next batch once the last one is acked, and a nacked
// message again, as brokers' inputs do.
type recorded struct {
	batches []service.MessageBatch

	mu   sync.Mutex
	next int
	free chan struct{} // holds a token while no batch is in flight
}

func newRecorded(batches []service.MessageBatch) *recorded {
	r := &recorded{batches: batches, free: make(chan struct{}, 1)}
	r.free <- struct{}{}
	return r
}

func (r *recorded) Connect(context.Context) error { return nil }
func (r *recorded) Close(context.Context) error   { return nil }

func (r *recorded) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	select {
	case <-r.free:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == len(r.batches) {
		r.free <- struct{}{}
		return nil, nil, service.ErrEndOfInput
	}
	b := r.batches[r.next]
	r.next++
	return b, func(context.Context, error) error { r.free <- struct{}{}; return nil }, nil
}

// clouds are the local clouds with what is in them.
type clouds struct {
	sqs    *localsqs.SQS
	pubsub *localpubsub.PubSub
	local  output.Option
}

func newClouds(t *testing.T) *clouds {
	t.Helper()
	c := &clouds{
		sqs:    localsqs.New(localsqs.Options{AutoCreate: true}),
		pubsub: localpubsub.New(localpubsub.Options{AutoCreate: true}),
	}
	serve := func(h http.Handler) string {
		l, err := localcloud.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := localcloud.Serve(l, h)
		t.Cleanup(func() { _ = s.Close() })
		return s.URL()
	}
	c.local = output.WithLocal(output.Local{
		SQSEndpoint: serve(c.sqs), Region: localsqs.DefaultRegion,
		AccessKeyID: localsqs.DefaultAccessKeyID, SecretAccessKey: localsqs.DefaultSecretAccessKey,
		PubSubEndpoint: serve(c.pubsub), Project: localpubsub.DefaultProject,
	})
	return c
}

// run runs a configuration whose input is `recorded: {}` over the batches.
func (c *clouds) run(t *testing.T, conf string, batches []service.MessageBatch) {
	t.Helper()
	env := service.NewEnvironment()
	for _, register := range []func(*service.Environment, ...output.Option) error{output.RegisterSQS, output.RegisterPubSub} {
		if err := register(env, c.local); err != nil {
			t.Fatal(err)
		}
	}
	err := env.RegisterBatchInput("recorded", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
		return service.AutoRetryNacksBatched(newRecorded(batches)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := env.NewStreamBuilder()
	if err := b.SetYAML(conf); err != nil {
		t.Fatal(err)
	}
	if err := b.SetLoggerYAML("level: none"); err != nil {
		t.Fatal(err)
	}
	stream, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := stream.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// stored is what has arrived anywhere, queue by queue, in its order.
func (c *clouds) stored() (out []arrived) {
	for _, q := range c.sqs.Queues() {
		for _, m := range c.sqs.Messages(q) {
			out = append(out, arrived{Service: "SQS", Queue: q, Body: m.Body, Attributes: m.Attributes, Group: m.Group, DeduplicationID: m.DeduplicationID})
		}
	}
	for _, topic := range c.pubsub.Topics() {
		for _, m := range c.pubsub.Published(topic) {
			out = append(out, arrived{Service: "Pub/Sub", Queue: topic, Body: string(m.Data), Attributes: m.Attributes, Group: m.OrderingKey})
		}
	}
	return out
}

// brokers says what each input sets on message n, and the id that the recipe makes of it.
var brokers = map[string]func(m *service.Message, n int, source string) (id string){
	"kafka": func(m *service.Message, n int, source string) string {
		m.MetaSetMut("kafka_topic", "webhooks")
		m.MetaSetMut("kafka_partition", 3)
		m.MetaSetMut("kafka_offset", 1000+n)
		m.MetaSetMut("kafka_timestamp_ms", int64(1737500000000+n))
		m.MetaSetMut("source", source)
		m.MetaSetMut("tenant", "acme")
		return fmt.Sprintf("webhooks/3/%d", 1000+n)
	},
	"nats": func(m *service.Message, n int, source string) string {
		m.MetaSetMut("nats_subject", "hooks."+source)
		m.MetaSetMut("nats_sequence_stream", fmt.Sprint(1000+n))
		m.MetaSetMut("nats_timestamp_unix_nano", fmt.Sprint(1737500000000000000+n*1_000_000))
		return fmt.Sprintf("HOOKS/%d", 1000+n)
	},
	"amqp": func(m *service.Message, n int, source string) string {
		m.MetaSetMut("amqp_message_id", fmt.Sprintf("m-%d", n))
		m.MetaSetMut("amqp_timestamp", "1737500000")
		m.MetaSetMut("amqp_routing_key", source)
		return fmt.Sprintf("m-%d", n)
	},
	"encoded": func(m *service.Message, n int, source string) string {
		h := message.Hook{ID: fmt.Sprintf("e-%d", n), SourceID: source, ReceivedAt: 1737500000000, Body: fmt.Appendf(nil, "hook %d", n)}
		m.SetBytes(h.AppendTo(nil))
		return h.ID
	},
}

const refused = 7 // the message that the cloud refuses for good

// The recipes for inputs of other builds, with a batched input in the place of the real one, against
// clouds that answer 503, refuse one message for a moment and one for good.
func TestRecipesForOtherInputs(t *testing.T) {
	const n, perBatch = 100, 25
	tested := map[string]bool{}
	for _, b := range blocks(t, "yaml") {
		if !b.marked("other-inputs") {
			continue
		}
		var kind string
		for _, word := range b.marks {
			if brokers[word] != nil {
				kind = word
			}
		}
		if kind == "" {
			t.Errorf("%s names no input that has a stand-in", b)
			continue
		}
		tested[kind] = true
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir()) // the dead letters are written here
			ids := make([]string, n)
			bodies := make([]string, n)
			var batches []service.MessageBatch
			for i := range n {
				m := service.NewMessage(fmt.Appendf(nil, "hook %d", i))
				ids[i] = brokers[kind](m, i, []string{"stripe", "github", "shopify"}[i%3])
				if body, err := m.AsBytes(); err == nil {
					bodies[i] = string(body)
				}
				if i%perBatch == 0 {
					batches = append(batches, nil)
				}
				batches[len(batches)-1] = append(batches[len(batches)-1], m)
			}
			c := newClouds(t)
			c.disturb(ids)
			c.run(t, withInput(t, b, map[string]any{"recorded": map[string]any{}}), batches)

			got := c.stored()
			// The reply of one request is lost. A FIFO queue collapses the second copies.
			seen := map[string]bool{}
			for _, a := range got {
				seen[a.Attributes["ankusa_id"]] = true
			}
			if len(seen) != n-1 || (got[0].DeduplicationID != "" && len(got) != len(seen)) {
				t.Errorf("%d messages, %d of %d hooks arrived, want all but one", len(got), len(seen), n)
			}
			last := map[string]int{}
			for _, a := range got {
				i := indexOf(ids, a.Attributes["ankusa_id"])
				switch {
				case i < 0 || i == refused:
					t.Errorf("arrived with id %q", a.Attributes["ankusa_id"])
				case kind == "encoded" && a.Body != bodies[i]:
					t.Errorf("message %d was passed on as %s", i, a.Body)
				case b.marked("ordered") && i < last[a.Group]:
					t.Errorf("group %s: message %d arrived after %d", a.Group, i, last[a.Group])
				}
				last[a.Group] = i
				if e := a.envelope(t); e.ReceivedAt < 1737500000000 || e.ReceivedAt > 1737500000000+n {
					t.Errorf("message %d: received_at %d", i, e.ReceivedAt)
				}
			}
			dead, err := os.ReadFile("dead-letters.jsonl")
			if err != nil || strings.Count(string(dead), "\n") != 1 || !strings.Contains(string(dead), `"reason":"permanent: `) {
				t.Errorf("dead letters: %s, %v", dead, err)
			}
		})
	}
	for kind := range brokers {
		if !tested[kind] {
			t.Errorf("no block has the recipe %s", kind)
		}
	}
}

// disturb scripts an outage of one request, a failure of one message for a moment, and one for good.
func (c *clouds) disturb(ids []string) {
	is := func(n int) func(*localcloud.Entry) bool {
		return func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == ids[n] }
	}
	c.sqs.Faults.Add(
		localcloud.Fault{Action: "SendMessageBatch", Nth: 2, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 503, Code: "ServiceUnavailable"}}},
		localcloud.Fault{Action: "SendMessageBatch", Nth: 4, Effect: localcloud.Effect{Stored: true, Cut: true}},
		localcloud.Fault{Action: "SendMessageBatch", Effect: localcloud.Effect{Entries: []localcloud.EntryFault{
			{If: is(refused), Do: localcloud.Refuse, Code: "InvalidMessageContents", SenderFault: true},
		}}},
	)
	c.pubsub.Faults.Add(
		localcloud.Fault{Action: "Publish", Nth: 2, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 503, Code: "UNAVAILABLE"}}},
		localcloud.Fault{Action: "Publish", If: func(call *localcloud.Call) bool {
			for i := range call.Entries {
				if is(refused)(&call.Entries[i]) {
					return true
				}
			}
			return false
		}, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 400, Code: "INVALID_ARGUMENT"}}},
	)
}

func indexOf(ids []string, id string) int {
	for i, x := range ids {
		if x == id {
			return i
		}
	}
	return -1
}

// What docs/delivery.md promises of order, mode by mode: ten messages of one group, of which number 2 is
// refused for a moment, alone where the service can do that, with its request where it can't.
func TestOrderIsWhatTheDeliveryPageSays(t *testing.T) {
	const kept = "0 1 2 3 4 5 6 7 8 9"
	for _, mode := range []struct {
		name, output string
		want         string // the order in which they are stored
	}{
		{"FIFO", "ankusa_sqs: { queue_url: 'https://sqs.us-east-1.amazonaws.com/123456789012/q.fifo', %s }", "0 1 3 4 5 6 7 8 9 2"},
		{"FIFO, strict_order", "ankusa_sqs: { queue_url: 'https://sqs.us-east-1.amazonaws.com/123456789012/q.fifo', batch: { strict_order: true }, %s }", kept},
		{"FIFO, batch.enabled false", "ankusa_sqs: { queue_url: 'https://sqs.us-east-1.amazonaws.com/123456789012/q.fifo', batch: { enabled: false }, %s }", kept},
		{"Pub/Sub with ordering_key", "ankusa_pubsub: { topic: hooks, ordering_key: k, %s }", kept},
	} {
		t.Run(mode.name, func(t *testing.T) {
			c := newClouds(t)
			two := func(e *localcloud.Entry) bool { return e.Attributes["ankusa_id"] == "id-2" }
			holdsTwo := func(call *localcloud.Call) bool {
				for i := range call.Entries {
					if two(&call.Entries[i]) {
						return true
					}
				}
				return false
			}
			c.sqs.Faults.Add(
				localcloud.Fault{Action: "SendMessageBatch", If: holdsTwo, Times: 1, Effect: localcloud.Effect{Entries: []localcloud.EntryFault{{If: two, Do: localcloud.Refuse, Code: "InternalError"}}}},
				localcloud.Fault{Action: "SendMessage", If: holdsTwo, Times: 1, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 500, Code: "InternalError"}}},
			)
			c.pubsub.Faults.Add(localcloud.Fault{Action: "Publish", If: holdsTwo, Times: 1, Effect: localcloud.Effect{Error: &localcloud.ErrorReply{Status: 503, Code: "UNAVAILABLE"}}})

			var batch service.MessageBatch
			for i := range 10 {
				m := service.NewMessage(fmt.Appendf(nil, "%d", i))
				m.MetaSetMut("ankusa_id", fmt.Sprintf("id-%d", i))
				m.MetaSetMut("ankusa_received_at", "1737500000000")
				batch = append(batch, m)
			}
			conf := "input: { recorded: {} }\npipeline: { threads: 1 }\noutput:\n  " +
				fmt.Sprintf(mode.output, "hook: { source_id: test }, backoff: { initial_interval: 1ms }")
			c.run(t, conf, []service.MessageBatch{batch})

			var got []string
			for _, a := range c.stored() {
				got = append(got, string(a.envelope(t).Body))
			}
			if strings.Join(got, " ") != mode.want {
				t.Errorf("stored in the order %q, want %q", got, mode.want)
			}
		})
	}
}

// The trap that docs/errors.md names: behind a retry output the class is gone from the text.
func TestARetryOutputHidesTheClass(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"alone", "", "permanent: message invalid_field: "},
		{"in a retry", "retry: { max_retries: 1, backoff: { initial_interval: 1ms, max_interval: 1ms }, output: ", "message failed to reach a target destination"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "failed")
			out := "ankusa_sqs: { queue_url: 'https://sqs.us-east-1.amazonaws.com/123456789012/q' }"
			if c.head != "" {
				out = c.head + "{ " + out + " } }"
			}
			conf := "input: { recorded: {} }\noutput: { fallback: [ { " + out + " }, { file: { path: " + file + ", codec: lines }, processors: [ { mapping: 'root = @fallback_error' } ] } ] }"
			newClouds(t).run(t, conf, []service.MessageBatch{{service.NewMessage([]byte("no source"))}})
			if got, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(got), c.want) {
				t.Errorf("fallback_error is %q (%v), want it to begin with %q", got, err, c.want)
			}
		})
	}
}

// Where docs/delivery.md says that an id has to come from: what an input delivers again it delivers as it
// read it, so a processor stamps it anew.
func TestAnIDStampedByAProcessorChangesWithARedelivery(t *testing.T) {
	for _, c := range []struct {
		name, id string
		want     int // ids that arrive of one hook
	}{
		{"minted", "uuid_v7()", 2},
		{"from the input", `"%s/%v".format(@kafka_topic, @kafka_offset)`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := service.NewMessage([]byte("hook"))
			brokers["kafka"](m, 1, "stripe")
			clouds := newClouds(t)
			// The hook is stored and the answer lost until the output gives up.
			clouds.sqs.Faults.Add(localcloud.Fault{Action: "SendMessageBatch", Times: 2, Effect: localcloud.Effect{Stored: true, Error: &localcloud.ErrorReply{Status: 500, Code: "InternalError"}}})
			clouds.run(t, `
input: { recorded: {} }
pipeline: { processors: [ { mapping: 'meta ankusa_id = `+c.id+`' } ] }
output:
  ankusa_sqs:
    queue_url: https://sqs.us-east-1.amazonaws.com/123456789012/q
    hook: { source_id: demo }
    max_retries: 1
    backoff: { initial_interval: 1ms }
`, []service.MessageBatch{{m}})
			ids := map[string]bool{}
			for _, a := range clouds.stored() {
				ids[a.Attributes["ankusa_id"]] = true
			}
			if len(ids) != c.want {
				t.Errorf("ids %v, want %d", ids, c.want)
			}
		})
	}
}
