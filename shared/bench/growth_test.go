package bench

import (
	"fmt"
	"testing"
)

// What is judged is the mean of the first quarter and that of the last.
func TestGrowthIsJudgedByQuarters(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for _, c := range []struct {
		sizes []float64
		want  string
	}{
		{[]float64{100, 102, 900, 900, 0, 0, 104, 106, 0}, "first quarter to the last: 101.0 MiB, then 53.0 MiB, -47.5 %: it shrank"},
		{[]float64{100, 102, 900, 0, 103, 104}, "first quarter to the last: 100.0 MiB, then 104.0 MiB, +4.0 %: flat"},
		{[]float64{100, 102, 900, 0, 0, 0, 106, 106}, "first quarter to the last: 101.0 MiB, then 106.0 MiB, +5.0 %: flat"},
		{[]float64{100, 102, 900, 107}, "first quarter to the last: 100.0 MiB, then 107.0 MiB, +7.0 %: it grew"},
	} {
		var judged []footprint
		for _, n := range c.sizes { // spread over all that is counted
			judged = append(judged, footprint{database: true, table: n * mebibyte / 2, indexes: n * mebibyte / 4, tickets: n * mebibyte / 4})
		}
		r := newResults("", "at")
		r.judge(judged)
		if want := "from the " + c.want; r.Verdict != want {
			t.Errorf("of %v it says %q, want %q", c.sizes, r.Verdict, want)
		}
		if len(r.Rows) != 2 || fmt.Sprint(r.Rows[0][0], ", ", r.Rows[1][0]) != "first quarter, last quarter" {
			t.Errorf("the rows are %v", r.Rows)
		}
	}
}
