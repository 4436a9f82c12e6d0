package prometheus

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
)

func open(t *testing.T, yaml string) *exporter {
	t.Helper()
	var got *exporter
	env := service.NewEnvironment()
	if err := Register(env); err != nil {
		t.Fatal(err)
	}
	spec := service.NewConfigSpec().Fields(
		service.NewBoolField(fieldHistogram).Default(false), service.NewFloatListField(fieldBuckets).Default([]any{}),
		service.NewBoolField(fieldProcess).Default(false), service.NewBoolField(fieldGo).Default(false))
	conf, err := spec.ParseYAML(yaml, env)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newExporter(conf, nil)
	if err != nil {
		t.Fatal(err)
	}
	got = m.(*exporter)
	return got
}

func scrape(e *exporter) string {
	w := httptest.NewRecorder()
	e.HandlerFunc()(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestExportsCountersGaugesAndTimers(t *testing.T) {
	e := open(t, "{}")
	e.NewCounterCtor("ankusa_messages_total", "sink", "class")("sqs", "ok").Incr(3)
	e.NewCounterCtor("ankusa_messages_total", "sink", "class")("sqs", "ok").Incr(2)
	e.NewGaugeCtor("ankusa.queue_entries", "sink")("sqs").Set(7)
	e.NewTimerCtor("ankusa_request_latency_ns", "sink")("sqs").Timing(1500)
	got := scrape(e)
	for _, want := range []string{
		`ankusa_messages_total{class="ok",sink="sqs"} 5`,
		`ankusa_queue_entries{sink="sqs"} 7`,
		`ankusa_request_latency_ns_sum{sink="sqs"} 1500`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestHistogramsAreInSeconds(t *testing.T) {
	e := open(t, "use_histogram_timing: true\nhistogram_buckets: [0.5, 2]")
	e.NewTimerCtor("latency")().Timing(1_500_000_000)
	got := scrape(e)
	for _, want := range []string{`latency_bucket{le="0.5"} 0`, `latency_bucket{le="2"} 1`, `latency_sum 1.5`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Two components may name the same labels in different orders.
func TestLabelOrderIsThatOfTheName(t *testing.T) {
	e := open(t, "{}")
	e.NewCounterCtor("n", "a", "b")("1", "2").Incr(1)
	e.NewCounterCtor("n", "b", "a")("2", "1").Incr(1)
	if got := scrape(e); !strings.Contains(got, `n{a="1",b="2"} 2`) {
		t.Errorf("got\n%s", got)
	}
}

func TestOneNameOfTwoKindsDoesNotPanic(t *testing.T) {
	e := open(t, "{}")
	e.NewCounterCtor("n", "a")("1").Incr(1)
	e.NewGaugeCtor("n", "a")("1").Set(5)
	e.NewCounterCtor("n", "a", "b")("1", "2").Incr(1)
	if got := scrape(e); !strings.Contains(got, `n{a="1"} 1`) {
		t.Errorf("got\n%s", got)
	}
}
