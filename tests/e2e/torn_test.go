package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
)

// TestFollowerBehindRetention: a follower that comes too late gets the state, and goes on from there; together they make
// what a snapshot shows (torn is true, snapshot and events).
func TestFollowerBehindRetention(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "millrace.yaml")
	if err := os.WriteFile(config, []byte("journal: {retention: {events: 100}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dial(t, serve(t, embedded(t), func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+config) }))
	emitMany(t, c, 0, 3000)
	eventually(t, "the beginning of the journal is evicted", func() bool {
		answer, err := c.Read(t.Context(), client.Query{Limit: 1})
		return err == nil && answer.Torn
	})

	var state *client.State
	for step, err := range c.Follow(t.Context(), client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if step.Snapshot != nil {
			if state != nil {
				t.Fatal("the follower is torn a second time")
			}
			state = client.StateOf(*step.Snapshot)
			emitMany(t, c, 1, 5)
			continue
		}
		if state == nil {
			t.Fatal("the follower read events behind a gap without being told")
		}
		if done := apply(t, state, step.Events, 5); done {
			break
		}
	}
	snapshot, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	objects := state.Objects()
	if len(objects) != len(snapshot.Objects) || len(objects) != 3005 {
		t.Fatalf("the follower knows %d objects and the snapshot %d, want 3005", len(objects), len(snapshot.Objects))
	}
	for i := range objects {
		if !objects[i].Equal(snapshot.Objects[i]) {
			t.Errorf("the follower has %+v, the snapshot %+v", objects[i], snapshot.Objects[i])
		}
	}
}

// emitMany appends many events of a writer, some hundreds at a time.
func emitMany(t *testing.T, c *client.Client, writer, count int) {
	t.Helper()
	for first := 0; first < count; first += 300 {
		var batch []event.Event
		for n := first; n < min(first+300, count); n++ {
			batch = append(batch, made(writer, n))
		}
		if _, err := c.Emit(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// apply folds events of writer 1 and reports whether its last one was among them.
func apply(t *testing.T, state *client.State, events []event.Event, count int) bool {
	t.Helper()
	last := made(1, count-1)
	for _, e := range events {
		if err := state.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return len(events) > 0 && events[len(events)-1].Key == last.Key
}
