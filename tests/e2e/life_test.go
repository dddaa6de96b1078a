package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestServersTellOfTheirLife: a server tells on the journal that it runs, that it stops, and that it has stopped, as in
// JobScheduler; one that is killed tells nothing of its end.
func TestServersTellOfTheirLife(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t))
	if err := errors.Join(s.Stop(), s.Start(t.Context()), s.Kill(), s.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range readAll(t, dial(t, s)) {
		told = append(told, strings.Join([]string{e.Type, e.Key.Path, string(e.Fields)}, " "))
	}
	runs := `SchedulerStateChanged  "state":"running"`
	if diff := cmp.Diff([]string{runs, `SchedulerStateChanged  "state":"stopping"`, "SchedulerClosed  ", runs, runs}, told); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
