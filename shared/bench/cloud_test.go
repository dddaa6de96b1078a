package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/bench"
)

// TestCloudMeasuresInVirtualTime: what is enqueued below the limits is run, at the rate that was asked for, in virtual minutes that take
// a moment.
func TestCloudMeasuresInVirtualTime(t *testing.T) {
	c := bench.Cloud{
		Cases: []string{"tasks", "append", "combine", "backlog"}, Processes: []int{2}, Workers: 8, Queues: []int{2}, Rate: []int{20}, Pace: []int{50},
		Appenders: 4, Functions: 3, Backlog: 200, Size: 256, Warmup: 2 * time.Second, Duration: 3 * time.Second, Table: 40000, Burst: time.Second, Seed: 1,
	}
	r, err := c.Run(t.Context(), bench.Program{})
	if err != nil || len(r.Rows) != 4 {
		t.Fatalf("%d rows, %v", len(r.Rows), err)
	}
	for i, want := range []string{"20", "50", "50"} {
		if got := fmt.Sprint(r.Rows[i][3]); got != want {
			t.Errorf("%v: %s a second, want %s", r.Rows[i][0], got, want)
		}
	}
	if _, err := (bench.Cloud{Cases: []string{"none"}}).Run(t.Context(), bench.Program{}); err == nil {
		t.Error("a case of no name was measured")
	}
}
