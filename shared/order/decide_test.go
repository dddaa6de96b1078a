package order

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event/typed"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	success := typed.NodeTransition{Type: typed.Success}
	failure := func(code int) typed.NodeTransition {
		return typed.NodeTransition{Type: typed.Failure, ReturnCode: code}
	}
	keep := typed.NodeTransition{Type: typed.Keep}
	plain := definition.GraphNode{ID: "A", Next: "B", Error: "E"}
	setsBack := definition.GraphNode{ID: "A", Next: "B", Error: "E", OnError: definition.ErrorSetsBack}
	setsBackWithout := definition.GraphNode{ID: "A", Next: "B", OnError: definition.ErrorSetsBack}
	suspends := definition.GraphNode{ID: "A", Next: "B", Error: "E", OnError: definition.ErrorSuspends}
	ranges := definition.GraphNode{ID: "A", Next: "B", Error: "E", OnError: definition.ErrorSetsBack, On: []definition.CodeRange{
		{From: 0, To: 0, Next: "Z"}, {From: 7, To: 9, Next: "R"}, {From: 10, To: 10},
	}}
	job := definition.Job{Setbacks: []definition.Setback{
		{Count: 2, Delay: time.Minute}, {Count: 4, Delay: time.Hour, IsMaximum: true},
	}}
	for _, test := range []struct {
		name string
		end  ended
		want decision
	}{
		{"a: an error under on_error: setback sets back", ended{node: &setsBack, failed: true, code: 3}, decision{transition: keep, setBack: true, setbacks: 1}},
		{"a: without a setback in this step the count is 0", ended{node: &setsBack, setbacks: 3}, decision{transition: success, next: "B"}},
		{"a: an error elsewhere is no setback, and the count is 0", ended{node: &plain, setbacks: 3, failed: true, code: 3}, decision{transition: failure(3), next: "E"}},
		{"b: set back: count + 1", ended{node: &setsBack, setbacks: 6, failed: true}, decision{transition: keep, setBack: true, setbacks: 7}},
		{"b: no delay is declared for the count: at once", ended{node: &setsBack, job: job, failed: true}, decision{transition: keep, setBack: true, setbacks: 1}},
		{"b: the delay of the count", ended{node: &setsBack, job: job, setbacks: 1, failed: true}, decision{transition: keep, setBack: true, setbacks: 2, delay: time.Minute}},
		{"b: the delay of the largest count below", ended{node: &setsBack, job: job, setbacks: 2, failed: true}, decision{transition: keep, setBack: true, setbacks: 3, delay: time.Minute}},
		{"b: the maximum itself is a setback", ended{node: &setsBack, job: job, setbacks: 3, failed: true}, decision{transition: keep, setBack: true, setbacks: 4, delay: time.Hour}},
		{"b: above the maximum: error, with count 0", ended{node: &setsBack, job: job, setbacks: 4, failed: true, code: 2}, decision{transition: failure(2), next: "E"}},
		{"b: above the maximum, and no error node", ended{node: &setsBackWithout, job: job, setbacks: 4, failed: true}, decision{transition: failure(1), suspended: true}},
		{"d: success: next", ended{node: &plain}, decision{transition: success, next: "B"}},
		{"d: success at the last node: the end", ended{node: &definition.GraphNode{ID: "A"}}, decision{transition: success}},
		{"d: success at the order's own end: the end", ended{node: &plain, last: true}, decision{transition: success}},
		{"d: an error at the order's own end: error", ended{node: &plain, last: true, failed: true}, decision{transition: failure(1), next: "E"}},
		{"d: an error under on_error: suspend suspends here", ended{node: &suspends, failed: true, code: 5}, decision{transition: failure(5), next: "E", suspended: true}},
		{"d: an error: error", ended{node: &plain, failed: true, code: 5}, decision{transition: failure(5), next: "E"}},
		{"d: an error without an error node suspends here", ended{node: &definition.GraphNode{ID: "A", Next: "B"}, failed: true}, decision{transition: failure(1), suspended: true}},
		{"e: a range comes before success", ended{node: &ranges}, decision{transition: success, next: "Z"}},
		{"e: a range comes before error and setback", ended{node: &ranges, failed: true, code: 8, setbacks: 2}, decision{transition: failure(8), next: "R"}},
		{"e: a range comes before the order's own end", ended{node: &ranges, last: true}, decision{transition: success, next: "Z"}},
		{"e: a range may lead to the end", ended{node: &ranges, failed: true, code: 10}, decision{transition: failure(10)}},
		{"e: no range holds", ended{node: &ranges, failed: true, code: 6}, decision{transition: keep, setBack: true, setbacks: 1}},
		{"an error without a return code is 1, not 0", ended{node: &ranges, failed: true}, decision{transition: keep, setBack: true, setbacks: 1}},
	} {
		if diff := cmp.Diff(test.want, decide(test.end), cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
