package journal_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// farAhead is a version that no ticket reaches.
const farAhead = int64(1) << 60

// change writes one event together with ops.
func change(t *testing.T, j *journal.Journal, ops ...store.Op) (journal.Receipt, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return j.Write(ctx, func(context.Context, *store.Conflict) (journal.Change, error) {
		return journal.Change{
			Events: []event.Event{custom(1)}, Ops: func(journal.Receipt) []store.Op { return ops },
		}, nil
	})
}

// TestFence: an item without a version of its own is given the slot's position, and refused if the version it replaces is
// not below that; one with a version of its own keeps it, and is written, checked and deleted whatever the ticket.
func TestFence(t *testing.T) {
	t.Parallel()
	key := store.Key{Table: store.Work, Partition: "lease", Sort: "1"}
	ahead := store.VersionIs(farAhead)
	for name, test := range map[string]struct {
		op      store.Op
		refused bool
		want    []int64 // versions under key afterwards; 0 stands for the slot's position
	}{
		"put, fenced":     {store.Put(store.Item{Key: key}, store.Always), false, []int64{0}},
		"put over newer":  {store.Put(store.Item{Key: key}, ahead), true, []int64{farAhead}},
		"put, exempt":     {store.Put(store.Item{Key: key, Version: 7}, ahead), false, []int64{7}},
		"check of newer":  {store.Check(key, ahead), true, []int64{farAhead}},
		"check, exempt":   {exempt(store.Check(key, ahead)), false, []int64{farAhead}},
		"delete of newer": {store.Delete(key, ahead), true, []int64{farAhead}},
		"delete, exempt":  {exempt(store.Delete(key, ahead)), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := memory.New(memory.Options{})
			j := open(t, s, journal.Options{})
			lease := store.Put(store.Item{Key: key, Version: farAhead}, store.Absent)
			if err := s.Write(t.Context(), store.Write{Token: "lease", Ops: []store.Op{lease}}); err != nil {
				t.Fatal(err)
			}
			receipt, err := change(t, j, test.op)
			if refused := err != nil; refused != test.refused {
				t.Fatalf("Write = %v, want refused %v", err, test.refused)
			}
			found, err := s.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			if found[0] != nil {
				got = append(got, found[0].Version)
			}
			if len(test.want) == 1 && test.want[0] == 0 {
				test.want[0] = receipt.Position
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

// exempt marks an operation as one outside the journal's order.
func exempt(op store.Op) store.Op {
	op.Item.Version = 1
	return op
}
