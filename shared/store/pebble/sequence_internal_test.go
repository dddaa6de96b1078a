package pebble

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

// TestManySequencersGoOnWhereTheyAre: sequencers that are not kept in memory are read again.
func TestManySequencersGoOnWhereTheyAre(t *testing.T) {
	t.Parallel()
	s, err := Open("data/store", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	const many, lot = 25_000, 1000
	for round := range int64(3) {
		for n := range many {
			key := store.Key{Table: store.Work, Partition: store.Passing + "q", Sort: fmt.Sprint(n)}
			ticket, err := s.Reserve(t.Context(), key, 1, 5)
			if err != nil || ticket.Position != round+1 || ticket.FirstID != 5+round {
				t.Fatalf("ticket %d of %d is %+v, %v", round+1, n, ticket, err)
			}
			if n%lot != lot-1 {
				continue
			}
			op := store.Put(store.Item{Key: key, Version: 1}, store.Always)
			if err := s.Write(t.Context(), store.Write{Token: fmt.Sprint(round, n), Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
			if kept := len(s.sequences.all); kept > maxSequencers {
				t.Fatalf("%d sequencers are kept in memory, want %d at most", kept, maxSequencers)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIdleSequencersThatArePassingAreForgotten: a passing sequencer without a recent reservation is removed; others go on, and
// those that are not passing stay for ever.
func TestIdleSequencersThatArePassingAreForgotten(t *testing.T) {
	t.Parallel()
	s, err := Open("data/store", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	reserve := func(key store.Key) store.Ticket {
		t.Helper()
		ticket, err := s.Reserve(t.Context(), key, 1, 7)
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	version := int64(0)
	commit := func() {
		t.Helper()
		version++
		op := store.Put(store.Item{Key: store.Key{Table: store.Work, Partition: "p", Sort: "s"}, Version: version}, store.Always)
		if err := s.Write(t.Context(), store.Write{Token: fmt.Sprint(version), Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	turn := func(name string) store.Key {
		return store.Key{Table: store.Work, Partition: store.Passing + "q", Sort: name}
	}
	idle, reserved, saved := turn("idle"), turn("reserved"), turn("saved")
	stay := []store.Key{
		{Table: store.Work, Partition: "turns", Sort: "q"}, {Table: store.Journal, Partition: store.Passing + "q", Sort: "idle"}, turn("used"),
	}
	for _, key := range append(stay, idle, reserved, saved) {
		reserve(key)
	}
	for _, key := range []store.Key{idle, reserved, saved} { // long ago
		s.sequences.all[key].used -= int64((store.PassingFor + time.Hour).Seconds())
	}
	commit()
	keys, err := s.idle()
	if err != nil || len(keys) != 3 {
		t.Fatalf("%d sequencers are idle, %v, want 3", len(keys), err)
	}
	reserve(saved) // after they were looked at
	commit()
	reserve(reserved) // just before they are deleted
	p := newPending(nil)
	p.idle = keys
	if err := s.commit(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, key := range stay {
		if ticket := reserve(key); ticket.Position != 2 || ticket.FirstID != 8 {
			t.Errorf("the sequencer %v goes on with %+v", key, ticket)
		}
	}
	for _, key := range []store.Key{reserved, saved} {
		if ticket := reserve(key); ticket.Position != 3 || ticket.FirstID != 9 {
			t.Errorf("%s, which was reserved of meanwhile, goes on with %+v", key.Sort, ticket)
		}
	}
	if ticket := reserve(idle); ticket.Position != 1 || ticket.FirstID != 7 {
		t.Errorf("one that was idle gives %+v, want to begin anew", ticket)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
