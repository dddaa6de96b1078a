package layout_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// usual is a running task as most are, with a payload of 200 bytes.
func usual() *task.Task {
	return &task.Task{
		ID: "00dc6acf-c397-7233-9ca6-94366e134d3b", Dialect: task.Job, Job: "/topics/mail", Group: "/topics#7", Queue: "main",
		State: task.Running, Created: 1_790_000_000_000_000, Started: 1_790_000_000_100_000, Attempt: 1, Attempts: 11, RetryDelay: 2e9,
		Instance: "worker-1", Lease: "00dc6acf-c397-7233-9ca6-94366e134d3b.1.0123456789abcdef01234567",
		Trace:   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Payload: json.RawMessage(`{"text":"` + strings.Repeat("x", 190) + `"}`),
	}
}

func BenchmarkEncode(b *testing.B) {
	t := usual()
	b.Run("compact", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			layout.Encode(t)
		}
	})
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Encode(t); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	asJSON, err := store.Encode(usual())
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string][]byte{"compact": layout.Encode(usual()), "JSON": asJSON} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(text)), "bytes")
			for b.Loop() {
				var t task.Task
				if err := layout.Decode(&store.Item{Value: text}, &t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
