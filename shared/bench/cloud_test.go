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
		Cases: []string{"tasks", "append", "combine", "backlog"}, Processes: []int{2}, Workers: 8, Queues: []int{2}, Parts: []int{16}, Rate: []int{20}, Pace: []int{50},
		Appenders: 4, Functions: 3, Backlog: 200, Size: 256, Warmup: 2 * time.Second, Duration: 3 * time.Second, Table: 40000, Burst: time.Second, Seed: 1,
	}
	r, err := c.Run(t.Context(), bench.Program{})
	if err != nil || len(r.Rows) != 4 {
		t.Fatalf("%d rows, %v", len(r.Rows), err)
	}
	for i, want := range []int{20, 50, 50} {
		var got int
		if _, err := fmt.Sscan(fmt.Sprint(r.Rows[i][3]), &got); err != nil || got < want*8/10 || got > want*12/10 {
			t.Errorf("%v: %v a second, want about %d", r.Rows[i][0], r.Rows[i][3], want)
		}
	}
	if _, err := (bench.Cloud{Cases: []string{"none"}}).Run(t.Context(), bench.Program{}); err == nil {
		t.Error("a case of no name was measured")
	}
}

// TestManyProcessesShareOneQueue: processes that claim from the same lines take turns at their parts, so that they keep up with a rate at
// which claims that all want the heads of all parts fall behind.
func TestManyProcessesShareOneQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for seconds")
	}
	const asked = 700
	c := bench.Cloud{
		Cases: []string{"tasks"}, Processes: []int{8}, Workers: 64, Queues: []int{1}, Parts: []int{16}, Rate: []int{asked}, Size: 256,
		Warmup: 10 * time.Second, Duration: 10 * time.Second, Table: 40000, Burst: time.Second, Seed: 1,
	}
	r, err := c.Run(t.Context(), bench.Program{})
	if err != nil {
		t.Fatal(err)
	}
	var got int
	if _, err := fmt.Sscan(fmt.Sprint(r.Rows[0][3]), &got); err != nil || got < asked*9/10 {
		t.Errorf("%v tasks a second ended of %d that were added (%v)", r.Rows[0][3], asked, err)
	}
}
