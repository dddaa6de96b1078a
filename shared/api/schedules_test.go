package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
)

// TestSchedulesAreListedByNameOrByTime: nothing else orders them, not even the name of no order.
func TestSchedulesAreListedByNameOrByTime(t *testing.T) {
	t.Parallel()
	w := newWhole(t, memory.New(memory.Options{}), journal.Retention{})
	w.defines(`schedules: [{name: a, cron: "0 0 0 1 1 ?", job: /topics/b}, {name: b, cron: "* * * * * ?", job: /topics/b}]`)
	w.tick(time.Second)
	for order, want := range map[string][]string{"": {"a", "b"}, "?order=name": {"a", "b"}, "?order=next": {"b", "a"}} {
		var got []string
		list := into[struct{ Schedules []struct{ Name string } }](t, w.as(t, access.Viewer, "GET", "/api/v1/schedules"+order, ""), 200)
		for _, s := range list.Schedules {
			got = append(got, s.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", order, diff)
		}
	}
	for _, order := range []string{"?order=", "?order=last", "?order=name&order=next"} {
		wantProblem(t, w.as(t, access.Viewer, "GET", "/api/v1/schedules"+order, ""), 400, api.CodeInvalid, "query.order")
	}
}
