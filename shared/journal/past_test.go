package journal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// chronicle is an independent account of what the fold registry was after each event.
type chronicle struct {
	ids    []event.ID
	states []map[string]string
}

func (c *chronicle) add(e event.Event) {
	state := map[string]string{}
	if n := len(c.states); n > 0 {
		state = maps.Clone(c.states[n-1])
	}
	delete(state, e.Key.Path)
	if e.Type != "Gone" {
		state[e.Key.Path] = e.ID.Time().Format(time.RFC3339Nano)
	}
	c.ids, c.states = append(c.ids, e.ID), append(c.states, state)
}

// at returns what was at an id, also one between two events.
func (c *chronicle) at(id event.ID) map[string]string {
	n, there := slices.BinarySearch(c.ids, id)
	if there {
		n++
	}
	if n == 0 {
		return map[string]string{}
	}
	return c.states[n-1]
}

// emit appends some events at random and notes them.
func (c *chronicle) emit(t *testing.T, j *journal.Journal, luck *rand.Rand) {
	t.Helper()
	events := make([]event.Event, 1+luck.IntN(4))
	for i := range events {
		events[i] = event.Event{Type: "Here", Key: event.Key{Path: fmt.Sprintf("/%d", luck.IntN(37))}}
		if luck.IntN(3) == 0 {
			events[i].Type = "Gone"
		}
	}
	r, err := j.Emit(t.Context(), events, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range r.EventIDs() {
		events[i].ID = id
		c.add(events[i])
	}
}

// was returns what a journal says that the fold registry was.
func was(t *testing.T, j *journal.Journal, at event.ID) (map[string]string, error) {
	t.Helper()
	all := map[string]string{}
	err := j.SnapshotAt(t.Context(), registry.Name, at, journal.Part{}, func(key string, value []byte) { all[key] = string(value) })
	return all, err
}

// check compares what a journal tells of an id with the chronicle.
func (c *chronicle) check(t *testing.T, j *journal.Journal, at, floor event.ID) {
	t.Helper()
	got, err := was(t, j, at)
	switch newest := c.ids[len(c.ids)-1]; {
	case at < floor:
		if !errors.Is(err, journal.ErrEvicted) {
			t.Fatalf("at %d, below the floor %d: %v, want ErrEvicted", at, floor, err)
		}
		return
	case at > newest:
		if !errors.Is(err, journal.ErrBeyond) {
			t.Fatalf("at %d, beyond %d: %v, want ErrBeyond", at, newest, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("at %d, floor %d: %v", at, floor, err)
	}
	if diff := cmp.Diff(c.at(at), got); diff != "" {
		t.Fatalf("at %d, floor %d (-want +got):\n%s", at, floor, diff)
	}
}

// restless is a store in which something happens with each change of the manifest.
type restless struct {
	store.Store
	meanwhile func()
}

// Write writes.
func (r *restless) Write(ctx context.Context, w store.Write) error {
	if err := r.Store.Write(ctx, w); err != nil || w.Ops[0].Item.Key.Sort != "newest" {
		return err
	}
	r.meanwhile()
	return nil
}

// While events come, slots are evicted and removed, and bases replaced, everything at and above the floor can be told, by the
// process that has swept, by one that only reads, and by fresh ones.
func TestWhatWasIsTold(t *testing.T) {
	t.Parallel()
	for _, keep := range []int64{1, 8, 100, 1000} {
		t.Run(fmt.Sprintf("keep=%d", keep), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				luck := rand.New(rand.NewPCG(uint64(keep), 1))
				s := &restless{Store: memory.New(memory.Options{})}
				o := journal.Options{Folds: []journal.Fold{counter, registry}, Retention: journal.Retention{Events: keep}, Chunk: 16}
				sweeper, reader := open(t, s, o), open(t, s, o)
				var c chronicle
				var floor event.ID
				sweep := func() {
					t.Helper()
					s.meanwhile = func() {
						if luck.IntN(3) == 0 {
							c.emit(t, reader, luck)
						}
					}
					swept, err := sweeper.Sweep(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					s.meanwhile, floor = func() {}, swept.FloorID
				}
				s.meanwhile = func() {}
				for round := range 400 {
					c.emit(t, sweeper, luck)
					if round == 0 {
						c.check(t, reader, 0, 0)
					}
					if luck.IntN(8) == 0 {
						sweep()
					}
					if luck.IntN(40) == 0 {
						time.Sleep(time.Duration(luck.IntN(30)) * time.Hour)
						sweep()
					}
					if luck.IntN(10) > 0 {
						continue
					}
					for _, j := range []*journal.Journal{sweeper, reader, open(t, s, o)} {
						span := int64(c.ids[len(c.ids)-1] - floor)
						ids := []event.ID{floor, floor - 1, floor + 1, c.ids[len(c.ids)-1], c.ids[len(c.ids)-1] + 1, floor + event.ID(luck.Int64N(span+1))}
						for range 6 {
							ids = append(ids, c.ids[luck.IntN(len(c.ids))], c.ids[max(0, len(c.ids)-1-luck.IntN(int(keep)+20))])
						}
						for _, at := range ids {
							c.check(t, j, max(0, at), floor)
						}
					}
				}
			})
		})
	}
}

// A journal that was restored tells what was at the id at which it begins anew.
func TestWhatWasBeforeARestore(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	o := journal.Options{Folds: []journal.Fold{registry}}
	j := open(t, s, o)
	var c chronicle
	for range 20 {
		c.emit(t, j, rand.New(rand.NewPCG(1, 2)))
	}
	began, err := j.Restored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := c.at(began)
	for range 3 {
		c.emit(t, j, rand.New(rand.NewPCG(3, 4)))
	}
	for _, process := range []*journal.Journal{j, open(t, s, o)} {
		c.check(t, process, began-1, began)
		c.check(t, process, began, began)
		if got, err := was(t, process, began); err != nil || !maps.Equal(got, want) {
			t.Errorf("at the new beginning: %v, %v, want %v", got, err, want)
		}
	}
}

func TestWhatWasOfAnUnknownFold(t *testing.T) {
	t.Parallel()
	j := open(t, memory.New(memory.Options{}), journal.Options{})
	if err := j.SnapshotAt(t.Context(), "nothing", 0, journal.Part{}, func(string, []byte) {}); !errors.Is(err, journal.ErrUnknownFold) {
		t.Errorf("SnapshotAt = %v, want ErrUnknownFold", err)
	}
}

// Slots are removed although the events change no object, so that no layer has records.
func TestSlotsAreRemovedThoughNothingChanges(t *testing.T) {
	t.Parallel()
	silent := journal.Fold{Name: "silent", Apply: func(*journal.State, *event.Event) {}}
	for name, rounds := range map[string]int{"a base alone": 1, "changes": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := open(t, memory.New(memory.Options{}), journal.Options{Folds: []journal.Fold{silent}})
				sweep := func() (swept journal.Swept) {
					t.Helper()
					swept, err := j.Sweep(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(25 * time.Hour)
					return swept
				}
				for range rounds {
					for n := range 40 {
						if _, err := j.Emit(t.Context(), []event.Event{custom(n)}, nil); err != nil {
							t.Fatal(err)
						}
					}
					sweep()
					time.Sleep(4 * 24 * time.Hour) // half the age of what is kept, after which changes are stored
				}
				time.Sleep(8 * 24 * time.Hour)
				sweep()
				if swept, all := sweep(), int64(40*rounds); swept.Floor != all || swept.Removed != all {
					t.Errorf("swept %+v, want all %d slots evicted and removed", swept, all)
				}
			})
		})
	}
}
