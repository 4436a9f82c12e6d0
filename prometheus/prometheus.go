// Package prometheus exports the engine's and the outputs' metrics in the Prometheus text format, at
// /metrics and /stats of the engine's own HTTP server: `metrics: {prometheus: {}}`. It is part of this
// distribution only; a Redpanda Connect build brings its own exporter of that name.
package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldHistogram = "use_histogram_timing"
	fieldBuckets   = "histogram_buckets"
	fieldProcess   = "add_process_metrics"
	fieldGo        = "add_go_metrics"
)

// Register adds the exporter to an environment, under the name prometheus.
func Register(env *service.Environment) error {
	spec := service.NewConfigSpec().
		Stable().
		Summary("Serves metrics in the Prometheus format on the service-wide HTTP server, at `/metrics` and `/stats`.").
		Fields(
			service.NewBoolField(fieldHistogram).Description("Export timers as histograms, in seconds, instead of as summaries, in nanoseconds.").Default(false),
			service.NewFloatListField(fieldBuckets).Description("Upper bounds of the histograms' buckets, in seconds. Empty means Prometheus's defaults.").Default([]any{}).Advanced(),
			service.NewBoolField(fieldProcess).Description("Export the process's memory, file descriptors and processor time.").Default(false).Advanced(),
			service.NewBoolField(fieldGo).Description("Export Go's garbage collector and goroutines.").Default(false).Advanced(),
		)
	return env.RegisterMetricsExporter("prometheus", spec, newExporter)
}

// exporter implements service.MetricsExporter and serves its registry.
type exporter struct {
	registry  *prometheus.Registry
	histogram bool
	buckets   []float64
	log       *service.Logger

	mu     sync.Mutex // guards the maps
	counts map[string]*prometheus.CounterVec
	gauges map[string]*prometheus.GaugeVec
	timers map[string]prometheus.ObserverVec
	labels map[string][]string // of each name, as first seen
}

func newExporter(conf *service.ParsedConfig, log *service.Logger) (service.MetricsExporter, error) {
	e := &exporter{
		registry: prometheus.NewRegistry(),
		log:      log,
		counts:   map[string]*prometheus.CounterVec{},
		gauges:   map[string]*prometheus.GaugeVec{},
		timers:   map[string]prometheus.ObserverVec{},
		labels:   map[string][]string{},
	}
	var err error
	if e.histogram, err = conf.FieldBool(fieldHistogram); err != nil {
		return nil, err
	}
	if e.buckets, err = conf.FieldFloatList(fieldBuckets); err != nil {
		return nil, err
	}
	if len(e.buckets) == 0 {
		e.buckets = prometheus.DefBuckets
	}
	if !slices.IsSorted(e.buckets) {
		return nil, fmt.Errorf("field %s: bounds have to increase", fieldBuckets)
	}
	for field, collector := range map[string]prometheus.Collector{
		fieldProcess: collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		fieldGo:      collectors.NewGoCollector(),
	} {
		on, err := conf.FieldBool(field)
		if err != nil {
			return nil, err
		}
		if on {
			if err := e.registry.Register(collector); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// HandlerFunc serves the registry. The engine looks for this method by its name.
func (e *exporter) HandlerFunc() http.HandlerFunc {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}).ServeHTTP
}

// Close has nothing to give back.
func (e *exporter) Close(context.Context) error { return nil }

// NewCounterCtor returns the counters of a name.
func (e *exporter) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	vec, at := obtain(e, e.counts, name, labels, func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "Counter of the stream."}, labels)
	})
	return func(values ...string) service.MetricsExporterCounter {
		if vec == nil {
			return nothing{}
		}
		return counter{vec.WithLabelValues(at(values)...)}
	}
}

// NewGaugeCtor returns the gauges of a name.
func (e *exporter) NewGaugeCtor(name string, labels ...string) service.MetricsExporterGaugeCtor {
	vec, at := obtain(e, e.gauges, name, labels, func(name string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "Gauge of the stream."}, labels)
	})
	return func(values ...string) service.MetricsExporterGauge {
		if vec == nil {
			return nothing{}
		}
		return gauge{vec.WithLabelValues(at(values)...)}
	}
}

// NewTimerCtor returns the timers of a name.
func (e *exporter) NewTimerCtor(name string, labels ...string) service.MetricsExporterTimerCtor {
	vec, at := obtain(e, e.timers, name, labels, func(name string) prometheus.ObserverVec {
		if e.histogram {
			return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: "Timer of the stream, in seconds.", Buckets: e.buckets}, labels)
		}
		return prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: "Timer of the stream, in nanoseconds.",
			Objectives: map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.99: 0.001}}, labels)
	})
	unit := 1.0
	if e.histogram {
		unit = 1e9
	}
	return func(values ...string) service.MetricsExporterTimer {
		if vec == nil {
			return nothing{}
		}
		return timer{vec.WithLabelValues(at(values)...), unit}
	}
}

// obtain returns the vector of a name, made on first use, and a function that puts label values in the
// vector's order. The zero value comes back when the name exists with other labels or as another kind:
// such a series can't be exported, and that must not take the pipeline down.
func obtain[V prometheus.Collector](e *exporter, vecs map[string]V, name string, labels []string, make func(string) V) (V, func([]string) []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name = sanitize(name)
	vec, ok := vecs[name]
	if !ok {
		vec = make(name)
		if err := e.registry.Register(vec); err != nil {
			e.log.Warnf("metric %s is not exported: %v", name, err)
			var none V
			return none, nil
		}
		vecs[name], e.labels[name] = vec, labels
	}
	order := e.labels[name]
	if len(order) != len(labels) {
		e.log.Warnf("metric %s is not exported with labels %v: it has %v", name, labels, order)
		var none V
		return none, nil
	}
	index := map[string]int{}
	for i, l := range labels {
		index[l] = i
	}
	return vec, func(values []string) []string {
		out := slices.Clone(values)
		for i, l := range order {
			if k, ok := index[l]; ok {
				out[i] = values[k]
			}
		}
		return out
	}
}

// sanitize makes a metric name of any name: the engine separates by dots.
func sanitize(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == ':' {
			return r
		}
		return '_'
	}, name)
}

type counter struct{ prometheus.Counter }

func (c counter) Incr(n int64) { c.Add(float64(n)) }

type gauge struct{ g prometheus.Gauge }

func (g gauge) Set(v int64) { g.g.Set(float64(v)) }

type timer struct {
	prometheus.Observer
	unit float64 // nanoseconds of one exported unit
}

func (t timer) Timing(ns int64) { t.Observe(float64(ns) / t.unit) }

// nothing stands for a series that can't be exported.
type nothing struct{}

func (nothing) Incr(int64)   {}
func (nothing) Set(int64)    {}
func (nothing) Timing(int64) {}
