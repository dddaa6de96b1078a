package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// write appends events in one slot.
func write(t *testing.T, j *journal.Journal, by string, events ...event.Event) journal.Receipt {
	t.Helper()
	r, err := j.Write(journal.WithActor(t.Context(), by), func(context.Context, *store.Conflict) (journal.Change, error) {
		return journal.Change{Events: events}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// origin is what a reader is told of an event's origin.
type origin struct {
	Type  string
	Cause event.ID
	By    string
}

func originsOf(events []event.Event) []origin {
	all := make([]origin, len(events))
	for i := range events {
		all[i] = origin{events[i].Type, events[i].Cause.ID(), events[i].By}
	}
	return all
}

// life writes events that bring each other about, in each way to say so, and returns what readers are to be told.
func life(t *testing.T, j *journal.Journal) []origin {
	t.Helper()
	task := event.Key{Path: "/j", TaskID: "1"}
	other := event.Key{Path: "/j", TaskID: "2"}
	added := write(t, j, "ci",
		event.Event{Type: "TaskAdded", Key: task}, event.Event{Type: "TaskAdded", Key: other}, event.Event{Type: "OrderAdded"})
	started := write(t, j, "",
		event.Event{Type: "TaskStarted", Key: task, Cause: event.CausedAt(added.Position)},
		event.Event{Type: "OrderStarted", Cause: event.CausedBy(added.FirstID + 2)})
	ended := write(t, j, "worker",
		event.Event{Type: "TaskEnded", Key: task, Cause: event.CausedAt(started.Position)},
		event.Event{Type: "Said", By: "boss"},
		event.Event{Type: "TaskClosed", Key: task, Cause: event.CausedBefore(2)})
	gone := write(t, j, "", event.Event{Type: "TaskRemoved", Key: task, Cause: event.CausedAt(ended.Position)},
		event.Event{Type: "TaskStarted", Key: event.Key{Path: "/j", TaskID: "3"}, Cause: event.CausedAt(ended.Position)})
	_ = gone
	return []origin{
		{"TaskAdded", 0, "ci"}, {"TaskAdded", 0, "ci"}, {"OrderAdded", 0, "ci"},
		{"TaskStarted", added.FirstID, ""}, {"OrderStarted", added.FirstID + 2, ""},
		{"TaskEnded", started.FirstID, "worker"}, {"Said", 0, "boss"}, {"TaskClosed", ended.FirstID, "worker"},
		{"TaskRemoved", ended.FirstID + 2, ""}, {"TaskStarted", 0, ""}, // there is no event of task 3
	}
}

// Who asks for causes is told them as ids, and who acted, wherever the slots are; nobody else is.
func TestReadersAskForCauses(t *testing.T) {
	t.Parallel()
	m := memory.New(memory.Options{})
	j := open(t, m, journal.Options{})
	want := life(t, j)
	for name, reader := range map[string]*journal.Journal{"in memory": j, "in the store": open(t, m, journal.Options{})} {
		for _, limit := range []int{0, 1, 3} {
			var got []event.Event
			for after := event.ID(0); len(got) < len(want); {
				a, err := reader.ReadAfter(t.Context(), journal.Request{After: after, Limit: limit, Causes: true})
				if err != nil || len(a.Events) == 0 {
					t.Fatalf("%s: ReadAfter = %+v, %v", name, a, err)
				}
				got, after = append(got, a.Events...), a.Events[len(a.Events)-1].ID
			}
			if diff := cmp.Diff(want, originsOf(got)); diff != "" {
				t.Errorf("%s, by %d: (-want +got)\n%s", name, limit, diff)
			}
		}
		newest, err := reader.ReadNewest(t.Context(), journal.Request{Causes: true})
		slices.Reverse(newest.Events)
		if diff := cmp.Diff(want, originsOf(newest.Events)); diff != "" || err != nil {
			t.Errorf("%s, newest first: %v (-want +got)\n%s", name, err, diff)
		}
		for a, err := range reader.Follow(t.Context(), journal.Request{Causes: true}, time.Minute) {
			if diff := cmp.Diff(want, originsOf(a.Events)); diff != "" || err != nil {
				t.Errorf("%s, followed: %v (-want +got)\n%s", name, err, diff)
			}
			break
		}
		plain, err := reader.ReadAfter(t.Context(), journal.Request{})
		for _, e := range plain.Events {
			if e.Cause != 0 || e.By != "" {
				t.Errorf("%s: not asked for, but told: %+v", name, e)
			}
		}
		if err != nil || len(plain.Events) != len(want) {
			t.Errorf("%s: ReadAfter = %+v, %v", name, plain, err)
		}
	}
}

// Nobody can say by fields of his own what has brought his event about, or who.
func TestOnlyTheJournalNamesCauses(t *testing.T) {
	t.Parallel()
	j := open(t, memory.New(memory.Options{}), journal.Options{})
	write(t, j, "ci", event.Event{Type: "Said", Fields: []byte(`"a":1,"cause":12,"by":"boss","\u0062y":"me","z":{"by":"x"}`)},
		event.Event{Type: "Said", Fields: []byte(`"cause":12`)})
	asked, err := j.ReadAfter(t.Context(), journal.Request{Causes: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"a":1,"z":{"by":"x"}`, ""} {
		if got := string(asked.Events[i].Fields); got != want {
			t.Errorf("fields %s, want %s", got, want)
		}
	}
	plain, err := j.ReadAfter(t.Context(), journal.Request{})
	if got := string(plain.Events[1].Fields); err != nil || got != `"cause":12` {
		t.Errorf("fields %s, %v, want them as they were emitted", got, err)
	}
}

// slotWatch notes the slots that are written.
type slotWatch struct {
	store.Store
	slots []store.Item
}

// Write writes, and notes the last item, which is the slot.
func (w *slotWatch) Write(ctx context.Context, write store.Write) error {
	w.slots = append(w.slots, write.Ops[len(write.Ops)-1].Item)
	return w.Store.Write(ctx, write)
}

// The bytes of slots never change their meaning: journals outlive programs. Without origins they are as they were before there
// were any.
func TestBytesOfSlots(t *testing.T) {
	t.Parallel()
	w := &slotWatch{Store: memory.New(memory.Options{})}
	j := open(t, w, journal.Options{Now: func() time.Time { return time.UnixMicro(1_000_000) }})
	write(t, j, "", event.Event{Type: "E", Key: event.Key{Path: "/k", TaskID: "7"}, Fields: []byte(`"n":1`)}, event.Event{Type: "F"})
	write(t, j, "ci", event.Event{Type: "G", Key: event.Key{Path: "/k", TaskID: "7"}, Cause: event.CausedAt(1)},
		event.Event{Type: "H", Cause: event.CausedBy(1_000_001), By: "ops"}, event.Event{Type: "I", Cause: event.CausedBefore(1)})
	want := []string{
		"\x01\xc1\x84\x3d\x00\x02\xc0\x84\x3d\x01E\x02/k\x017\x05\"n\":1\x01F\x00\x00\x00",
		"\x02\xc4\x84\x3d\x00\x03\xc2\x84\x3d\x02\x02ci\x03ops" +
			"\x01G\x02/k\x017\x00\x05\x01" + "\x01H\x00\x00\x00\x07\x02" + "\x01I\x00\x00\x00\x04\x01",
	}
	for i, item := range w.slots {
		if got := string(item.Value); got != want[i] {
			t.Errorf("slot %d is %q, want %q", i, got, want[i])
		}
	}
}

// A slot that is damaged is told as such, whatever its bytes are, and one that is read has causes that lie before their effects.
func FuzzSlot(f *testing.F) {
	w := &slotWatch{Store: memory.New(memory.Options{})}
	j := journal.Open(w, journal.Options{})
	for _, by := range []string{"", "ci"} {
		if _, err := j.Emit(journal.WithActor(context.Background(), by), []event.Event{
			{Type: "E", Key: event.Key{Path: "/k"}}, {Type: "E", Key: event.Key{Path: "/k"}, Cause: event.CausedBefore(1)},
			{Type: "E", Cause: event.CausedAt(1), By: "ops"},
		}, nil); err != nil {
			f.Fatal(err)
		}
	}
	for _, item := range w.slots {
		f.Add(item.Value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if len(value) == 0 {
			return
		}
		synctest.Test(t, func(t *testing.T) { readDamaged(t, value) })
	})
}

// readDamaged reads a journal whose second slot has been replaced.
func readDamaged(t *testing.T, value []byte) {
	m := memory.New(memory.Options{})
	written := &slotWatch{Store: m}
	first := open(t, written, journal.Options{})
	for range 2 {
		if _, err := first.Emit(t.Context(), []event.Event{{Type: "E", Key: event.Key{Path: "/k"}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	damaged := written.slots[1]
	damaged.Value = value
	if err := m.Write(t.Context(), store.Write{Token: "x", Ops: []store.Op{store.Put(damaged, store.Always)}}); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a, err := open(t, m, journal.Options{}).ReadAfter(ctx, journal.Request{Causes: true})
	if err != nil {
		return
	}
	for _, e := range a.Events {
		if c := e.Cause; c < 0 || c.ID() >= e.ID && c != 0 {
			t.Errorf("event %d has the cause %d", e.ID, c)
		}
	}
}

// A lineage is of one event and leaves out what has merely happened beside it; bounds are told.
func TestLineage(t *testing.T) {
	t.Parallel()
	m := memory.New(memory.Options{})
	j := open(t, m, journal.Options{})
	root := write(t, j, "ci", event.Event{Type: "Root"}, event.Event{Type: "Beside"})
	for i := range 3 {
		write(t, j, "", event.Event{Type: "Child", Key: event.Key{Path: "/a"}, Cause: event.CausedBy(root.FirstID), Fields: fmt.Appendf(nil, `"n":%d`, i)},
			event.Event{Type: "Other", Key: event.Key{Path: "/a"}, Cause: event.CausedBy(root.FirstID + 1)}) // the last of its key is no descendant
		at := write(t, j, "").Position - 1
		write(t, j, "", event.Event{Type: "Other", Key: event.Key{Path: "/a"}, Cause: event.CausedAt(at)})
	}
	for name, reader := range map[string]*journal.Journal{"in memory": j, "in the store": open(t, m, journal.Options{})} {
		got, err := reader.Lineage(t.Context(), root.FirstID, 1<<20)
		want := slices.Repeat([]origin{{"Child", root.FirstID, ""}}, 3)
		if diff := cmp.Diff(want, originsOf(got.Descendants)); diff != "" || err != nil || got.SearchedTo != 0 || got.Ancestors != nil {
			t.Errorf("%s: %+v, %v (-want +got)\n%s", name, got, err, diff)
		}
		beside, err := reader.Lineage(t.Context(), root.FirstID+1, 1<<20)
		if err != nil || len(beside.Descendants) != 6 {
			t.Errorf("%s: beside it: %+v, %v, want 6 descendants", name, beside, err)
		}
		last := beside.Descendants[5]
		above, err := reader.Lineage(t.Context(), last.ID, 1<<20)
		if diff := cmp.Diff([]origin{{"Beside", 0, "ci"}, {"Other", root.FirstID + 1, ""}}, originsOf(above.Ancestors)); diff != "" || err != nil {
			t.Errorf("%s: ancestors: %v (-want +got)\n%s", name, err, diff)
		}
		cut, err := reader.Lineage(t.Context(), root.FirstID, 1)
		if err != nil || cut.SearchedTo == 0 || len(cut.Descendants) == 0 || cut.SearchedTo < cut.Descendants[len(cut.Descendants)-1].ID {
			t.Errorf("%s: of one byte: %+v, %v, want what was searched", name, cut, err)
		}
	}
}

func TestLineageIsBounded(t *testing.T) {
	t.Parallel()
	j := open(t, memory.New(memory.Options{}), journal.Options{})
	root := write(t, j, "", event.Event{Type: "E"}).FirstID
	chain := make([]event.Event, 2*journal.MaxKin)
	for i := range chain {
		chain[i] = event.Event{Type: "E", Cause: event.CausedBefore(1)}
	}
	chain[0].Cause = event.CausedBy(root)
	wrote := write(t, j, "", chain...)
	newest := wrote.FirstID + event.ID(len(chain)-1)
	write(t, j, "", event.Event{Type: "E"})
	down, err := j.Lineage(t.Context(), root, 64<<20)
	if err != nil || len(down.Descendants) != journal.MaxKin || down.SearchedTo != down.Descendants[journal.MaxKin-1].ID {
		t.Errorf("%d descendants up to %d, %v, want %d", len(down.Descendants), down.SearchedTo, err, journal.MaxKin)
	}
	up, err := j.Lineage(t.Context(), newest, 64<<20)
	if err != nil || len(up.Ancestors) != journal.MaxKin || up.Ancestors[journal.MaxKin-1].ID != newest-1 {
		t.Errorf("%d ancestors, %v, want the nearest %d", len(up.Ancestors), err, journal.MaxKin)
	}
	for id, want := range map[event.ID]error{newest + 2: journal.ErrNoEvent, root - 1: journal.ErrNoEvent, 0: journal.ErrNoEvent} {
		if _, err := j.Lineage(t.Context(), id, 1<<20); !errors.Is(err, want) {
			t.Errorf("Lineage(%d) = %v, want %v", id, err, want)
		}
	}
}

// A cause that was evicted is named as long as its slot is stored, also where that is of several items; after that, the event has
// none.
func TestCausesThatWereEvicted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		options := journal.Options{Retention: journal.Retention{Events: 1}, Timing: journal.Timing{RemoveAfter: time.Hour}}
		j := open(t, m, options)
		key := event.Key{Path: "/j", TaskID: "1"}
		large := bytes.Repeat([]byte("x"), 400<<10)
		added := write(t, j, "", event.Event{Type: "TaskAdded", Key: key}, event.Event{Type: "E", Fields: fmt.Appendf(nil, `"x":%q`, large)})
		sweep := func() {
			for range 3 {
				if _, err := j.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		sweep() // what is at this moment is kept: the slot is not needed to tell it
		started := write(t, j, "", event.Event{Type: "TaskStarted", Key: key, Cause: event.CausedAt(added.Position)})
		told := func() event.ID {
			t.Helper()
			a, err := open(t, m, options).ReadAfter(t.Context(), journal.Request{After: started.FirstID - 1, Causes: true})
			if err != nil || len(a.Events) != 1 {
				t.Fatalf("ReadAfter = %+v, %v", a, err)
			}
			return a.Events[0].Cause.ID()
		}
		sweep()
		if _, err := j.Lineage(t.Context(), added.FirstID, 1<<20); !errors.Is(err, journal.ErrEventGone) {
			t.Fatalf("Lineage = %v, want %v", err, journal.ErrEventGone)
		}
		if got := told(); got != added.FirstID {
			t.Errorf("the cause is %d, want %d", got, added.FirstID)
		}
		time.Sleep(2 * time.Hour)
		sweep()
		if got := told(); got != 0 {
			t.Errorf("the cause is %d, want none: its slot was removed", got)
		}
		if up, err := j.Lineage(t.Context(), started.FirstID, 1<<20); err != nil || up.Ancestors != nil {
			t.Errorf("Lineage = %+v, %v, want no ancestors", up, err)
		}
	})
}
