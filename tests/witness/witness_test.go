package witness_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/witness"
)

func TestJudgeFindsEveryFault(t *testing.T) {
	t.Parallel()
	events := func(ids ...event.ID) []event.Event {
		all := make([]event.Event, len(ids))
		for i, id := range ids {
			all[i] = event.Event{ID: id, Type: "A"}
		}
		return all
	}
	tests := map[string]struct {
		saw  []event.Event
		want witness.Verdict
	}{
		"complete":      {events(1, 2, 3), witness.Verdict{}},
		"missed":        {events(1, 3), witness.Verdict{Missed: 1}},
		"doubled":       {events(1, 2, 2, 3), witness.Verdict{Doubled: 1}},
		"out of order":  {events(2, 1, 3), witness.Verdict{Unordered: 1}},
		"never emitted": {events(1, 2, 3, 9), witness.Verdict{Strange: 1}},
		"changed":       {append(events(1, 2), event.Event{ID: 3, Type: "B"}), witness.Verdict{Strange: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, witness.Judge(events(1, 2, 3), test.saw)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
