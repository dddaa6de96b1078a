// Package prom counts what the API does for Prometheus. Plain hosts link it; functions on Lambda do not.
//
// It imports metric and the Prometheus client, and not package api: Metrics has the methods that api.Metrics asks for.
package prom

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace/millrace/shared/metric"
)

// Metrics is an api.Metrics that Prometheus can scrape.
type Metrics struct {
	registry   *prometheus.Registry
	own        prometheus.Registerer // of Millrace's metrics: each gets the label of the store
	requests   *prometheus.HistogramVec
	operations *prometheus.CounterVec
	events     *prometheus.CounterVec
	following  prometheus.Gauge
}

// New returns Metrics of the deployment with that store, whose name must hold no secret. Their registry is their own, and has the Go
// runtime's and the process's measurements too.
func New(store string) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{
		registry: registry, own: prometheus.WrapRegistererWith(prometheus.Labels{metric.Store: store}, registry),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    metric.Requests.Name,
			Help:    metric.Requests.Help,
			Buckets: []float64{.0002, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, metric.Requests.Labels),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metric.Operations.Name,
			Help: metric.Operations.Help,
		}, metric.Operations.Labels),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metric.Events.Name,
			Help: metric.Events.Help,
		}, metric.Events.Labels),
		following: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: metric.Followers.Name,
			Help: metric.Followers.Help,
		}),
	}
	m.own.MustRegister(m.requests, m.operations, m.events, m.following)
	m.registry.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(liveHeap)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// liveHeap is the memory that the last collection of garbage found in use, without what has become garbage since.
var liveHeap = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)}

// Calls adds the counter millrace_store_calls_total: how often each method of the store was called. calls returns that by name;
// it is called at each scrape.
func (m *Metrics) Calls(calls func() map[string]int64) {
	m.own.MustRegister(storeCalls{calls, prometheus.NewDesc(
		metric.StoreCalls.Name, metric.StoreCalls.Help, metric.StoreCalls.Labels, nil)})
}

// storeCalls is a collector of counters that are kept elsewhere.
type storeCalls struct {
	calls func() map[string]int64
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c storeCalls) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.desc }

// Collect implements prometheus.Collector.
func (c storeCalls) Collect(metrics chan<- prometheus.Metric) {
	for method, n := range c.calls() {
		metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), method)
	}
}

// Register adds a collector, such as one of the engine's own measurements.
func (m *Metrics) Register(c prometheus.Collector) error { return m.registry.Register(c) }

// Clock adds the gauge millrace_clock_offset_seconds. offset returns how far the process's clock is ahead of the store's date; 0
// within what is tolerated.
func (m *Metrics) Clock(offset func() time.Duration) {
	m.own.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: metric.ClockOffset.Name,
		Help: metric.ClockOffset.Help,
	}, func() float64 { return offset().Seconds() }))
}

// Gauge adds a measurement without labels of its own, whose value value returns at each scrape.
func (m *Metrics) Gauge(of metric.Metric, value func() float64) {
	m.own.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: of.Name, Help: of.Help}, value))
}

// Counter is Gauge for what only grows.
func (m *Metrics) Counter(of metric.Metric, value func() float64) {
	m.own.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: of.Name, Help: of.Help}, value))
}

// Handler returns a handler that serves the measurements in Prometheus's text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request implements api.Metrics.
func (m *Metrics) Request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

// Outcome implements api.Metrics.
func (m *Metrics) Outcome(operation, outcome string, events int) {
	m.operations.WithLabelValues(operation, outcome).Inc()
	if events > 0 {
		m.events.WithLabelValues(operation).Add(float64(events))
	}
}

// Following implements api.Metrics.
func (m *Metrics) Following(change int) { m.following.Add(float64(change)) }
