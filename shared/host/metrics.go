package host

import (
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/metric"
)

// Metrics receives the API's measurements. It has the methods of api.Metrics, which describes them, and Measure for what functions measure
// besides, without labels.
type Metrics interface {
	Request(route string, status int, took time.Duration)
	Outcome(operation, outcome string, events int)
	Following(change int)
	Measure(of metric.Metric, value float64)
}

// namespace groups the metrics in CloudWatch.
const namespace = "Millrace"

// EmbeddedMetrics writes measurements as log lines in CloudWatch's embedded metric format, from which CloudWatch makes
// metrics without requests. It is safe for concurrent use.
type EmbeddedMetrics struct {
	store string
	mu    sync.Mutex
	out   io.Writer
}

// NewEmbeddedMetrics returns metrics of the deployment with that store. They are written to out, which must become the function's log.
func NewEmbeddedMetrics(out io.Writer, store string) *EmbeddedMetrics {
	return &EmbeddedMetrics{store: store, out: out}
}

// Request writes a request's duration by route and status; the number of samples counts the requests.
func (m *EmbeddedMetrics) Request(route string, status int, took time.Duration) {
	m.write(map[string]any{"route": route, "status": strconv.Itoa(status), metric.Requests.Name: took.Seconds()}, metric.Requests)
}

// Outcome counts an operation by outcome, and its events.
func (m *EmbeddedMetrics) Outcome(operation, outcome string, events int) {
	m.write(map[string]any{"operation": operation, "outcome": outcome, metric.Operations.Name: 1, metric.Events.Name: events},
		metric.Operations, metric.Events)
}

// Following writes nothing: on Lambda each process serves one request, and CloudWatch counts those itself.
func (m *EmbeddedMetrics) Following(int) {}

// Measure writes a measurement that has no labels of its own.
func (m *EmbeddedMetrics) Measure(of metric.Metric, value float64) {
	m.write(map[string]any{of.Name: value}, of)
}

// directive says which members of a line are a metric and its dimensions. Dimensions must be strings: CloudWatch drops what has others.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []unit
}

type unit struct{ Name, Unit string }

func (m *EmbeddedMetrics) write(members map[string]any, metrics ...metric.Metric) {
	var directives []directive
	for _, x := range metrics {
		dimensions := append([]string{metric.Store}, x.Labels...)
		directives = append(directives, directive{namespace, [][]string{dimensions}, []unit{{x.Name, x.Unit}}})
	}
	members[metric.Store] = m.store
	members["_aws"] = map[string]any{"Timestamp": time.Now().UnixMilli(), "CloudWatchMetrics": directives}
	line, err := json.Marshal(members)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.out.Write(append(line, '\n')) // a lost measurement is no failure
}
