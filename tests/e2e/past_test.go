package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
)

// TestWhatWas: while the beginning of the journal is evicted and the server is killed, every id that is kept is told as an
// independent fold of the events up to it makes it, and any other is refused as what it is (snapshot and events, torn is true).
func TestWhatWas(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "millrace.yaml")
	if err := os.WriteFile(config, []byte("journal: {retention: {events: 400}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, embedded(t), func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+config) })
	c := dial(t, s)
	luck := rand.New(rand.NewPCG(1, 2))
	var all []event.Event
	for round := range 3 {
		for range 100 {
			events := make([]event.Event, 1+luck.IntN(5))
			for i := range events {
				events[i] = event.Event{Type: "Made", Key: event.Key{Path: fmt.Sprintf("/o/%d", luck.IntN(50))}, Fields: fmt.Appendf(nil, `"n":%d`, len(all)+i)}
				if luck.IntN(4) == 0 {
					events[i].Type = "MadeRemoved"
				}
			}
			ids, err := c.Emit(t.Context(), events)
			if err != nil {
				t.Fatal(err)
			}
			for i := range events {
				events[i].ID = ids[i]
			}
			all = append(all, events...)
		}
		if round > 0 {
			eventually(t, "the beginning of the journal is evicted", func() bool {
				_, err := c.SnapshotAt(t.Context(), "", all[0].ID)
				return client.StatusOf(err) == 410
			})
		}
		told := 0
		for range 100 {
			n := luck.IntN(len(all))
			if sameAt(t, c, all[:n+1]) {
				told++
			}
		}
		if sameAt(t, c, all); told == 0 || round == 0 && told < 100 {
			t.Errorf("round %d: only %d of 100 ids are told", round, told)
		}
		if _, err := c.SnapshotAt(t.Context(), "", all[len(all)-1].ID+1); client.StatusOf(err) != 422 {
			t.Errorf("beyond the newest: %v, want 422", err)
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// sameAt reports whether what was after the last of some events is told; it must be what they make then.
func sameAt(t *testing.T, c *client.Client, events []event.Event) bool {
	t.Helper()
	at := events[len(events)-1].ID
	got, err := c.SnapshotAt(t.Context(), "", at)
	if client.StatusOf(err) == 410 {
		return false
	}
	if err != nil || got.EventID != at {
		t.Fatalf("what was at %d is stamped %d, %v", at, got.EventID, err)
	}
	state := client.StateOf(client.Snapshot{})
	for _, e := range events {
		if err := state.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	want := state.Objects()
	if len(got.Objects) != len(want) {
		t.Fatalf("at %d there were %d objects, want %d", at, len(got.Objects), len(want))
	}
	for i := range want {
		if !want[i].Equal(got.Objects[i]) {
			t.Errorf("at %d there was %+v, want %+v", at, got.Objects[i], want[i])
		}
	}
	return true
}
