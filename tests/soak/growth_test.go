package main

import (
	"testing"
	"time"
)

// made returns one sample a second, in which calls of the store grow by more each second, or do not.
func made(seconds int, calls func(second int) float64) []sample {
	all := []sample{{at: time.Unix(0, 0), rss: 1}}
	for s := 1; s <= seconds; s++ {
		last := all[len(all)-1]
		all = append(all, sample{at: time.Unix(int64(s), 0), rss: 1, closed: last.closed + 10, calls: last.calls + calls(s)})
	}
	return all
}

func TestGrowthIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls func(int) float64
		wrong bool
	}{
		"flat":                        {func(int) float64 { return 70 }, false},
		"up and down":                 {func(s int) float64 { return 70 + float64(s%7)*10 }, false},
		"growing":                     {func(s int) float64 { return 70 + float64(s) }, true},
		"growing at first":            {func(s int) float64 { return 70 + float64(min(s, 20)) }, false},
		"shrinking":                   {func(s int) float64 { return 700 - float64(s) }, false},
		"growing less than tolerated": {func(s int) float64 { return 700 + float64(s) }, false},
	} {
		table := rows(made(120, c.calls), time.Unix(0, 0), 10*time.Second)
		if len(table) != 12 || table[5].Tasks != 10 || table[5].At != 60 {
			t.Fatalf("%s: %d rows, the sixth %+v", name, len(table), table[5])
		}
		got := trendOf("calls", table, func(r row) float64 { return r.Calls }, 0.25)
		if got.Wrong != c.wrong {
			t.Errorf("%s: %v (%+v), want wrong %t", name, got, got, c.wrong)
		}
	}
}
