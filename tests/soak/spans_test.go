package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var exact = cmp.AllowUnexported(span{})

func TestSpans(t *testing.T) {
	t.Parallel()
	busy := spans{{10, 20}, {30, 40}}
	for name, c := range map[string]struct{ got, want spans }{
		"union":                 {union(spans{{5, 12}, {30, 35}}, busy), spans{{5, 20}, {30, 40}}},
		"union of what touches": {union(spans{{20, 30}}, busy), spans{{10, 40}}},
		"without":               {busy.without(spans{{0, 12}, {15, 16}, {39, 50}}), spans{{12, 15}, {16, 20}, {30, 39}}},
		"without all":           {busy.without(spans{{0, 100}}), nil},
		"nowhere":               {nowhere([]spans{busy, {{18, 32}}}, 0, 50), spans{{0, 10}, {40, 50}}},
		"at least two":          {atLeast([]change{{1, 1}, {9, -1}, {3, 1}, {5, -1}, {20, 1}, {21, 1}}, 2, 30), spans{{3, 5}, {21, 30}}},
	} {
		if diff := cmp.Diff(c.want, c.got, exact); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, c := range []struct{ from, to, want int64 }{{0, 50, 20}, {12, 14, 2}, {20, 30, 0}, {15, 35, 10}, {40, 60, 0}} {
		if got := busy.covered(c.from, c.to); got != c.want {
			t.Errorf("covered(%d, %d) = %d, want %d", c.from, c.to, got, c.want)
		}
	}
}
