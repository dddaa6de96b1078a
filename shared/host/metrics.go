package host

import (
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"
)

// Metrics receives the API's measurements. It has the same methods as api.Metrics, which describes them.
type Metrics interface {
	Request(route string, status int, took time.Duration)
	Outcome(operation, outcome string, events int)
	Following(change int)
}

// namespace groups the metrics in CloudWatch.
const namespace = "Millrace"

// EmbeddedMetrics writes measurements as log lines in CloudWatch's embedded metric format, from which CloudWatch makes
// metrics without requests. It is safe for concurrent use.
type EmbeddedMetrics struct {
	mu  sync.Mutex
	out io.Writer
}

// NewEmbeddedMetrics returns metrics that write to out, which must become the function's log.
func NewEmbeddedMetrics(out io.Writer) *EmbeddedMetrics { return &EmbeddedMetrics{out: out} }

// Request writes a request's duration in milliseconds by route and status; the number of samples counts the requests.
func (m *EmbeddedMetrics) Request(route string, status int, took time.Duration) {
	m.write([]string{"route", "status"}, []metric{{"duration", "Milliseconds"}}, map[string]any{
		"route": route, "status": strconv.Itoa(status), "duration": float64(took.Microseconds()) / 1000,
	})
}

// Outcome writes the number of events of an operation, by outcome.
func (m *EmbeddedMetrics) Outcome(operation, outcome string, events int) {
	m.write([]string{"operation", "outcome"}, []metric{{"events", "Count"}}, map[string]any{
		"operation": operation, "outcome": outcome, "events": events,
	})
}

// Following writes nothing: on Lambda each process serves one request, and CloudWatch counts those itself.
func (m *EmbeddedMetrics) Following(int) {}

// metric is a member with a number. The members that are dimensions must be strings: CloudWatch drops what has others.
type metric struct{ Name, Unit string }

func (m *EmbeddedMetrics) write(dimensions []string, metrics []metric, members map[string]any) {
	members["_aws"] = map[string]any{
		"Timestamp": time.Now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": namespace, "Dimensions": [][]string{dimensions}, "Metrics": metrics,
		}},
	}
	line, err := json.Marshal(members)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.out.Write(append(line, '\n')) // a lost measurement is no failure
}
