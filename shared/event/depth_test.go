package event_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
)

func TestDepthProblem(t *testing.T) {
	t.Parallel()
	arrays := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, c := range map[string]struct {
		value string
		deep  bool
	}{
		"a text":             {`"` + strings.Repeat("[", 300) + `"`, false},
		"an escaped quote":   {`"\"` + strings.Repeat("[", 300) + `"`, false},
		"arrays":             {arrays(event.MaxDepth), false},
		"one more":           {arrays(event.MaxDepth + 1), true},
		"objects":            {objects(event.MaxDepth), false},
		"one object more":    {objects(event.MaxDepth + 1), true},
		"beside each other":  {"[" + strings.Repeat(arrays(event.MaxDepth-1)+",", 3) + "1]", false},
		"deep at the end":    {"[" + strings.Repeat("1,", 300) + objects(event.MaxDepth) + "]", true},
		"cut off":            {strings.Repeat("[", 300), true},
		"cut off in a text":  {`["` + strings.Repeat("[", 300) + `\`, false},
		"far too deep":       {arrays(500_000), true},
		"nothing but closed": {strings.Repeat("]", 300), false},
	} {
		if got := event.DepthProblem([]byte(c.value)); (got != "") != c.deep || c.deep && !strings.Contains(got, "at most 100") {
			t.Errorf("%s: %q, want a problem: %v", name, got, c.deep)
		}
	}
}
