package output

import (
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// metrics are the counters of one output; docs/metrics.md lists them. Every label value is a fixed
// word, so no hook can make a new series.
type metrics struct {
	sink string

	requests       *service.MetricCounter
	requestEntries *service.MetricCounter
	messages       *service.MetricCounter
	configErrors   *service.MetricCounter
	retries        *service.MetricCounter
	bisections     *service.MetricCounter
	latency        *service.MetricTimer
	queueEntries   *service.MetricGauge
	queueBytes     *service.MetricGauge
	heldGroups     *service.MetricGauge

	mu    sync.Mutex // guards total, and keeps an older sum from being set after a newer one
	total struct{ entries, bytes, held int }
}

func newMetrics(m *service.Metrics, sink string) *metrics {
	return &metrics{
		sink:           sink,
		requests:       m.NewCounter("ankusa_requests_total", "sink", "outcome"),
		requestEntries: m.NewCounter("ankusa_request_entries_total", "sink"),
		messages:       m.NewCounter("ankusa_messages_total", "sink", "class"),
		configErrors:   m.NewCounter("ankusa_dispatch_config_errors_total", "sink"),
		retries:        m.NewCounter("ankusa_retries_total", "sink", "class"),
		bisections:     m.NewCounter("ankusa_bisections_total"),
		latency:        m.NewTimer("ankusa_request_latency_ns", "sink"),
		queueEntries:   m.NewGauge("ankusa_queue_entries", "sink"),
		queueBytes:     m.NewGauge("ankusa_queue_bytes", "sink"),
		heldGroups:     m.NewGauge("ankusa_held_groups", "sink"),
	}
}

// request counts one HTTP request as it went.
func (m *metrics) request(entries int, latency time.Duration, outcome string) {
	m.requests.Incr(1, m.sink, outcome)
	m.requestEntries.Incr(int64(entries), m.sink)
	m.latency.Timing(latency.Nanoseconds(), m.sink)
}

// results counts the messages of one write by how they ended.
func (m *metrics) results(results []error) {
	ok := 0
	var failed [len(classify.Classes)]int
	for _, err := range results {
		if err == nil {
			ok++
		} else {
			failed[classify.Of(err).Class]++
		}
	}
	if ok > 0 {
		m.messages.Incr(int64(ok), m.sink, "ok")
	}
	for class, n := range failed {
		if n > 0 {
			m.messages.Incr(int64(n), m.sink, classify.Class(class).String())
		}
	}
	if n := failed[classify.Config]; n > 0 {
		m.configErrors.Incr(int64(n), m.sink)
	}
}

// The methods below make metrics the scheduler's batcher.Observer. Amounts are changes, summed here
// over all queues of the output: the engine's own gauges can't add.

// Waiting implements batcher.Observer.
func (m *metrics) Waiting(entries, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total.entries += entries
	m.total.bytes += bytes
	m.queueEntries.Set(int64(m.total.entries), m.sink)
	m.queueBytes.Set(int64(m.total.bytes), m.sink)
}

// Held implements batcher.Observer.
func (m *metrics) Held(groups int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total.held += groups
	m.heldGroups.Set(int64(m.total.held), m.sink)
}

// Retried implements batcher.Observer.
func (m *metrics) Retried(class classify.Class, entries int) {
	m.retries.Incr(int64(entries), m.sink, class.String())
}
