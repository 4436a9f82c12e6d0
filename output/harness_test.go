package output_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
	"github.com/ankusa-connect/ankusa-connect/output"
)

// The tests of this file's harness run whole pipelines: the engine, our outputs, real loopback HTTP, a
// strict cloud. An input that is ours to script feeds them and remembers what was acked and what was
// nacked, message by message.

// hook is one message of a scripted input.
type hook struct {
	body string
	meta map[string]string
}

// numbered makes n hooks with bodies "hook 0", "hook 1", … and stable ids.
func numbered(n int) []hook {
	out := make([]hook, n)
	for i := range out {
		out[i] = hook{body: fmt.Sprintf("hook %d", i), meta: map[string]string{
			"ankusa_id":          fmt.Sprintf("id-%d", i),
			"ankusa_source_id":   "test",
			"ankusa_received_at": fmt.Sprint(1737500000000 + i),
			"n":                  fmt.Sprint(i),
		}}
	}
	return out
}

// script is an input: transactions of hooks, each of which the engine acks or nacks.
type script struct {
	transactions [][]hook
	replay       bool // a nacked message is delivered again, as most inputs do

	mu      sync.Mutex
	next    int
	pending sync.WaitGroup
	acked   map[string]int // by metadata n: how often a delivery was acked
	nacked  map[string][]error
}

func newScript(transactions ...[]hook) *script {
	return &script{transactions: transactions, acked: map[string]int{}, nacked: map[string][]error{}}
}

// singly cuts hooks into transactions of one.
func singly(hooks []hook) [][]hook {
	out := make([][]hook, len(hooks))
	for i, h := range hooks {
		out[i] = []hook{h}
	}
	return out
}

func (s *script) Connect(context.Context) error { return nil }

func (s *script) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	s.mu.Lock()
	if s.next == len(s.transactions) {
		s.mu.Unlock()
		return nil, nil, service.ErrEndOfInput
	}
	hooks := s.transactions[s.next]
	s.next++
	s.mu.Unlock()
	batch := make(service.MessageBatch, len(hooks))
	for i, h := range hooks {
		m := service.NewMessage([]byte(h.body))
		for k, v := range h.meta {
			m.MetaSet(k, v)
		}
		batch[i] = m
	}
	index := batch.Index()
	s.pending.Add(1)
	return batch, func(_ context.Context, err error) error {
		defer s.pending.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		failed := map[int]error{}
		if err != nil {
			if be, ok := errors.AsType[*service.BatchError](err); ok && be.IndexedErrors() > 0 {
				be.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
					if err != nil && i >= 0 {
						failed[i] = err
					}
					return true
				})
			} else {
				for i := range hooks {
					failed[i] = err
				}
			}
		}
		for i, h := range hooks {
			if e := failed[i]; e != nil {
				s.nacked[h.meta["n"]] = append(s.nacked[h.meta["n"]], e)
			} else {
				s.acked[h.meta["n"]]++
			}
		}
		return nil
	}, nil
}

func (s *script) Close(context.Context) error { return nil }

// nackedHooks names the hooks that were nacked, in order of n.
func (s *script) nackedHooks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for i := 0; i < 100_000 && len(out) < len(s.nacked); i++ {
		if _, ok := s.nacked[fmt.Sprint(i)]; ok {
			out = append(out, fmt.Sprint(i))
		}
	}
	return strings.Join(out, " ")
}

func (s *script) ackedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acked)
}

// sink collects what reaches an output of ours in a pipeline, such as a fallback's second tier.
type sink struct {
	mu   sync.Mutex
	got  []string // metadata n
	errs []string // metadata fallback_error
}

func (k *sink) Connect(context.Context) error { return nil }
func (k *sink) Close(context.Context) error   { return nil }
func (k *sink) Write(_ context.Context, m *service.Message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, _ := m.MetaGet("n")
	e, _ := m.MetaGet("fallback_error")
	k.got, k.errs = append(k.got, n), append(k.errs, e)
	return nil
}

// pipeline runs an output's YAML behind a script until every hook has been acked or nacked.
type pipeline struct {
	t      *testing.T
	env    *service.Environment
	sqs    *localsqs.SQS
	pubsub *localpubsub.PubSub
	server struct{ sqs, pubsub *localcloud.Server }
	script *script
	sink   *sink
	logs   *logLines
}

type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

func newPipeline(t *testing.T, s *script) *pipeline {
	t.Helper()
	return newPipelineOver(t, s, func() (net.Listener, []output.Option) {
		l, err := localcloud.Listen("127.0.0.1:0")
		must(t, err)
		return l, nil
	})
}

// newPipedPipeline is newPipeline for a synctest bubble: clouds are reached over net.Pipe, because a
// socket would stop the bubble's clock.
func newPipedPipeline(t *testing.T, s *script) *pipeline {
	t.Helper()
	return newPipelineOver(t, s, func() (net.Listener, []output.Option) {
		l := localcloud.NewPipeListener()
		return l, []output.Option{output.WithDial(l.DialContext)}
	})
}

func newPipelineOver(t *testing.T, s *script, listen func() (net.Listener, []output.Option)) *pipeline {
	t.Helper()
	p := &pipeline{
		t: t, env: service.NewEnvironment(), script: s, sink: &sink{}, logs: &logLines{},
		sqs:    localsqs.New(localsqs.Options{AutoCreate: true}),
		pubsub: localpubsub.New(localpubsub.Options{AutoCreate: true}),
	}
	for _, x := range []struct {
		server   **localcloud.Server
		handler  http.Handler
		register func(*service.Environment, ...output.Option) error
	}{{&p.server.sqs, p.sqs, output.RegisterSQS}, {&p.server.pubsub, p.pubsub, output.RegisterPubSub}} {
		l, opts := listen()
		*x.server = localcloud.Serve(l, x.handler)
		t.Cleanup(func() { _ = (*x.server).Close() })
		must(t, x.register(p.env, opts...))
	}
	p.register()
	return p
}

// register adds the script's input and the sink to the pipeline's environment.
func (p *pipeline) register() {
	must(p.t, p.env.RegisterBatchInput("script", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			if p.script.replay {
				return service.AutoRetryNacksBatched(p.script), nil
			}
			return p.script, nil
		}))
	must(p.t, p.env.RegisterOutput("sink", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.Output, int, error) { return p.sink, 1, nil }))
}

// sqsYAML is an ankusa_sqs output towards the local cloud, with more fields appended.
func (p *pipeline) sqsYAML(queue, fields string) string {
	return fmt.Sprintf(`
ankusa_sqs:
  queue_url: %s/%s/%s
  region: %s
  credentials: { id: %s, secret: %s }
%s`, p.server.sqs.URL(), localsqs.DefaultAccount, queue, localsqs.DefaultRegion, localsqs.DefaultAccessKeyID, localsqs.DefaultSecretAccessKey, indent(fields, "  "))
}

// pubsubYAML is an ankusa_pubsub output towards the local cloud, with more fields appended.
func (p *pipeline) pubsubYAML(topic, fields string) string {
	return fmt.Sprintf(`
ankusa_pubsub:
  project: %s
  topic: %s
  endpoint: %s
%s`, localpubsub.DefaultProject, topic, p.server.pubsub.URL(), indent(fields, "  "))
}

// fallback puts an output in front of the test's sink.
func fallback(outputYAML string) string {
	return "fallback:\n  - " + strings.ReplaceAll(strings.TrimSpace(outputYAML), "\n", "\n    ") + "\n  - sink: {}"
}

func indent(s, by string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	return by + strings.ReplaceAll(s, "\n", "\n"+by)
}

// build makes the stream of an output's YAML.
func (p *pipeline) build(outputYAML string) *service.Stream {
	p.t.Helper()
	b := p.env.NewStreamBuilder()
	must(p.t, b.AddInputYAML("script: {}"))
	must(p.t, b.AddOutputYAML(outputYAML))
	must(p.t, b.SetLoggerYAML("level: warn\nadd_timestamp: false"))
	b.SetThreads(1)
	b.SetPrintLogger(printer{p.logs})
	stream, err := b.Build()
	must(p.t, err)
	return stream
}

// run runs the pipeline to its end.
func (p *pipeline) run(outputYAML string) {
	p.t.Helper()
	stream := p.build(outputYAML)
	ctx, cancel := context.WithTimeout(p.t.Context(), 60*time.Second)
	defer cancel()
	if err := stream.Run(ctx); err != nil {
		p.t.Fatalf("the stream ended with %v; log:\n%s", err, p.logs)
	}
	p.script.pending.Wait()
}

type printer struct{ to *logLines }

func (p printer) Printf(format string, v ...any) { fmt.Fprintf(p.to, format, v...) }
func (p printer) Println(v ...any)               { fmt.Fprintln(p.to, v...) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bodies returns the stored messages' bodies by ankusa_id.
func (p *pipeline) stored(queue string) map[string]int {
	out := map[string]int{}
	for _, m := range p.sqs.Messages(queue) {
		out[m.Attributes["ankusa_id"]]++
	}
	return out
}
