package docs_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// names is a metrics exporter that keeps names with their kind and labels.
type names struct {
	mu   sync.Mutex
	seen map[string]string
}

func (n *names) add(kind, name string, labels []string) {
	if strings.HasPrefix(name, "ankusa_") {
		labels = slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == "label" || l == "path" || l == "stream" })
		slices.Sort(labels)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.seen[name] = strings.TrimSpace(kind + " " + strings.Join(labels, " "))
	}
}

type ignored struct{}

func (ignored) Incr(int64)   {}
func (ignored) Set(int64)    {}
func (ignored) Timing(int64) {}

func (n *names) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	n.add("counter", name, labels)
	return func(...string) service.MetricsExporterCounter { return ignored{} }
}

func (n *names) NewTimerCtor(name string, labels ...string) service.MetricsExporterTimerCtor {
	n.add("timer", name, labels)
	return func(...string) service.MetricsExporterTimer { return ignored{} }
}

func (n *names) NewGaugeCtor(name string, labels ...string) service.MetricsExporterGaugeCtor {
	n.add("gauge", name, labels)
	return func(...string) service.MetricsExporterGauge { return ignored{} }
}

func (n *names) Close(context.Context) error { return nil }

// The page lists the metrics that the outputs have, with kind and labels, and no others.
func TestTheMetricsPageListsTheMetrics(t *testing.T) {
	seen := &names{seen: map[string]string{}}
	env := service.NewEnvironment()
	if err := env.RegisterMetricsExporter("names", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Logger) (service.MetricsExporter, error) {
		return seen, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := env.RegisterBatchInput("recorded", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
		return newRecorded(nil), nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		"ankusa_sqs: { queue_url: 'https://sqs.us-east-1.amazonaws.com/123456789012/q' }",
		"ankusa_pubsub: { topic: hooks, project: p, endpoint: 'http://127.0.0.1:1' }",
	} {
		b := env.NewStreamBuilder()
		if err := b.SetYAML("input: { recorded: {} }\nmetrics: { names: {} }\nlogger: { level: none }\noutput: { " + out + " }"); err != nil {
			t.Fatal(err)
		}
		stream, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(ankusa_\\w+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(readFile(t, "docs/metrics.md"), -1) {
		labels := regexp.MustCompile(`\w+`).FindAllString(m[3], -1)
		slices.Sort(labels)
		listed[m[1]] = strings.TrimSpace(m[2] + " " + strings.Join(labels, " "))
	}
	if len(seen.seen) == 0 || !maps.Equal(listed, seen.seen) {
		t.Errorf("the page lists %v\nthe outputs have %v", listed, seen.seen)
	}
}
