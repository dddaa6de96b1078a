package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/transfer"
	"github.com/millrace/millrace/shared/upgrade"
)

// broken is a store in which something goes wrong.
type broken struct {
	*memory.Store
	load    func(loads int64) error // called before each Load; nil: none fails
	records func()                  // called before the first record is read; nil: nothing happens
	loads   atomic.Int64
}

// Load fails if load says so.
func (b *broken) Load(ctx context.Context, records []store.Record) error {
	loads := b.loads.Add(1)
	if b.load != nil {
		if err := b.load(loads); err != nil {
			return err
		}
	}
	return b.Store.Load(ctx, records)
}

// Records calls records.
func (b *broken) Records(ctx context.Context) iter.Seq2[*store.Record, error] {
	if b.records != nil {
		b.records()
	}
	return b.Store.Records(ctx)
}

func empty() *memory.Store { return memory.New(memory.Options{Shared: true}) }

// begun returns a store with some events, and more items than one batch takes.
func begun(t *testing.T) *memory.Store {
	t.Helper()
	s := memory.New(memory.Options{})
	if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		emit(t, s)
	}
	for n := range 2 * store.MaxLoad {
		put(t, s, store.Key{Table: store.Work, Partition: fmt.Sprint("p", n%7), Sort: fmt.Sprint(n)})
	}
	return s
}

func put(t *testing.T, s store.Store, key store.Key) {
	t.Helper()
	w := store.Write{Token: "t" + key.Sort, Ops: []store.Op{store.Put(store.Item{Key: key, Version: 1}, store.Absent)}}
	if err := s.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// emit appends an event, and returns its id.
func emit(t *testing.T, s store.Store) event.ID {
	t.Helper()
	j := journal.Open(s, journal.Options{})
	defer j.Close()
	receipt, err := j.Emit(t.Context(), []event.Event{{Type: "Made", Key: event.Key{Path: "/a"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.FirstID
}

// contents returns what a store holds, by key.
func contents(t *testing.T, s store.Portable) map[string]store.Record {
	t.Helper()
	all := map[string]store.Record{}
	for r, err := range s.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !upgrade.IsMark(r.Item.Key) && (r.Sequence == nil || *r.Sequence != store.Sequence{}) {
			all[fmt.Sprint(r.Item.Key, r.Sequence != nil)] = *r
		}
	}
	return all
}

// TestCopyThereAndBack: the copy of a copy is the first store again, and goes on with its EventIds.
func TestCopyThereAndBack(t *testing.T) {
	t.Parallel()
	from, there, back := begun(t), empty(), memory.New(memory.Options{})
	var told []int64
	copied, err := transfer.Copy(t.Context(), transfer.Options{From: from, To: there, Progress: func(n int64) { told = append(told, n) }})
	if err != nil {
		t.Fatal(err)
	}
	want := map[store.Table]int64{store.Journal: 100, store.Work: 2 * store.MaxLoad}
	if diff := cmp.Diff(want, copied.Items); diff != "" || copied.Sequencers != 1 || copied.Journal.Events != 100 || len(told) != 0 {
		t.Errorf("copied %+v, progress %v (-want +got):\n%s", copied, told, diff)
	}
	if _, err := transfer.Copy(t.Context(), transfer.Options{From: there, To: back}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, from), contents(t, back)); diff != "" {
		t.Errorf("back again (-want +got):\n%s", diff)
	}
	for _, s := range []store.Store{there, back} {
		if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); err != nil {
			t.Errorf("Check of a copy = %v", err)
		}
		if id := emit(t, s); id <= copied.Journal.LastID {
			t.Errorf("the next id is %d, want it above %d", id, copied.Journal.LastID)
		}
	}
}

// TestWhatCannotBeCopied is refused, and the target stays empty.
func TestWhatCannotBeCopied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from func(t *testing.T) store.Portable
		want error
	}{
		"nothing": {func(*testing.T) store.Portable { return empty() }, transfer.ErrNothing},
		"another layout": {func(t *testing.T) store.Portable {
			s := begun(t)
			w := store.Write{Token: "newer", Ops: []store.Op{store.Put(store.Item{
				Key: store.Key{Table: store.Journal, Partition: "layout", Sort: "0"}, Version: 9, Value: []byte(`{"layout":9,"since":"9.0.0"}`),
			}, store.Always)}}
			if err := s.Write(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			return s
		}, upgrade.ErrNewer},
		"a damaged journal": {func(t *testing.T) store.Portable {
			s := begun(t)
			at := store.Key{Table: store.Journal, Partition: "J#main#0000000000000", Sort: "0000000000000007"}
			w := store.Write{Token: "x", Ops: []store.Op{store.Put(store.Item{Key: at, Version: 7, Value: []byte("damaged")}, store.Always)}}
			if err := s.Write(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			return s
		}, journal.ErrDamaged},
		"what others use": {func(t *testing.T) store.Portable { return locked{begun(t)} }, transfer.ErrInUse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := empty()
			if _, err := transfer.Copy(t.Context(), transfer.Options{From: c.from(t), To: to}); !errors.Is(err, c.want) {
				t.Errorf("Copy = %v, want %v", err, c.want)
			}
			if found := contents(t, to); len(found) > 0 {
				t.Errorf("the target has %v, want nothing", found)
			}
			if _, err := transfer.Copy(t.Context(), transfer.Options{From: begun(t), To: to}); err != nil {
				t.Errorf("a copy afterwards = %v", err)
			}
		})
	}
}

// locked is a store that others use.
type locked struct{ *memory.Store }

// Records returns the error.
func (locked) Records(context.Context) iter.Seq2[*store.Record, error] {
	return func(yield func(*store.Record, error) bool) { yield(nil, store.ErrLocked) }
}

// TestOnlyAnEmptyStoreIsCopiedTo: neither a deployment nor anything else is overwritten, whatever is asked for.
func TestOnlyAnEmptyStoreIsCopiedTo(t *testing.T) {
	t.Parallel()
	item, sequencer, fresh := empty(), empty(), empty()
	put(t, item, store.Key{Table: store.Definitions, Partition: "p", Sort: "s"})
	if _, err := sequencer.Reserve(t.Context(), store.Key{Table: store.Work, Partition: "p", Sort: "s"}, 1, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := upgrade.Check(t.Context(), fresh, journal.ShortRun); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*memory.Store{"a deployment": begun(t), "an item": item, "a sequencer": sequencer, "a new deployment": fresh} {
		for _, again := range []bool{false, true} {
			before := contents(t, to)
			if _, err := transfer.Copy(t.Context(), transfer.Options{From: begun(t), To: to, Again: again}); !errors.Is(err, transfer.ErrNotEmpty) {
				t.Errorf("%s: Copy = %v, want %v", name, err, transfer.ErrNotEmpty)
			}
			if diff := cmp.Diff(before, contents(t, to)); diff != "" {
				t.Errorf("%s has changed:\n%s", name, diff)
			}
		}
	}
}

// TestAnInterruptedCopy: no program starts on it, it is not taken for a source, and it is begun anew only where that is asked for; what
// the first one has left is then gone.
func TestAnInterruptedCopy(t *testing.T) {
	t.Parallel()
	from := begun(t)
	lost := errors.New("the connection is lost")
	to := &broken{Store: empty()}
	for interruptions, again := range []bool{false, true, true} {
		to.loads.Store(0)
		to.load = func(loads int64) error {
			if loads > 1 {
				return lost
			}
			return nil
		}
		if _, err := transfer.Copy(t.Context(), transfer.Options{From: from, To: to, Again: again}); !errors.Is(err, lost) {
			t.Fatalf("Copy = %v, want %v", err, lost)
		}
		to.load = nil
		if _, err := upgrade.Check(t.Context(), to, journal.ShortRun); !errors.Is(err, upgrade.ErrIncomplete) {
			t.Errorf("after %d interruptions, Check = %v, want %v", interruptions+1, err, upgrade.ErrIncomplete)
		}
		if _, err := transfer.Copy(t.Context(), transfer.Options{From: to, To: empty()}); !errors.Is(err, upgrade.ErrIncomplete) {
			t.Errorf("a copy of it = %v, want %v", err, upgrade.ErrIncomplete)
		}
		if _, err := transfer.Copy(t.Context(), transfer.Options{From: from, To: to}); !errors.Is(err, upgrade.ErrIncomplete) {
			t.Errorf("a copy to it = %v, want %v", err, upgrade.ErrIncomplete)
		}
	}
	put(t, to, store.Key{Table: store.Work, Partition: "left", Sort: "s"})
	if _, err := to.Reserve(t.Context(), store.Key{Table: store.Work, Partition: "left", Sort: "s"}, 1, 1); err != nil {
		t.Fatal(err)
	}
	emit(t, from) // it was in use meanwhile
	if _, err := transfer.Copy(t.Context(), transfer.Options{From: from, To: to, Again: true}); err != nil {
		t.Fatalf("begun anew, Copy = %v", err)
	}
	whole := empty()
	if _, err := transfer.Copy(t.Context(), transfer.Options{From: from, To: whole}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, whole), contents(t, to)); diff != "" {
		t.Errorf("begun anew (-whole +got):\n%s", diff)
	}
	if _, err := upgrade.Check(t.Context(), to, journal.ShortRun); err != nil {
		t.Errorf("once it is complete, Check = %v", err)
	}
}

// TestTheSourceIsUsedMeanwhile: the copy is not completed.
func TestTheSourceIsUsedMeanwhile(t *testing.T) {
	t.Parallel()
	from := begun(t)
	to := &broken{Store: empty(), load: func(int64) error { emit(t, from); return nil }}
	if _, err := transfer.Copy(t.Context(), transfer.Options{From: from, To: to}); !errors.Is(err, transfer.ErrInUse) {
		t.Errorf("Copy = %v, want %v", err, transfer.ErrInUse)
	}
	if _, err := upgrade.Check(t.Context(), to, journal.ShortRun); !errors.Is(err, upgrade.ErrIncomplete) {
		t.Errorf("Check = %v, want %v", err, upgrade.ErrIncomplete)
	}
}

// TestACopyThatDiffers: what the target has lost, changed or got besides is found.
func TestACopyThatDiffers(t *testing.T) {
	t.Parallel()
	key := store.Key{Table: store.Work, Partition: "p0", Sort: "0"}
	for name, change := range map[string]store.Op{
		"lost":    store.Delete(key, store.Always),
		"changed": store.Put(store.Item{Key: key, Version: 1, Value: []byte("x")}, store.Always),
		"another": store.Put(store.Item{Key: store.Key{Table: store.Work, Partition: "p0", Sort: "x"}, Version: 1}, store.Always),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &broken{Store: empty()}
			to.records = func() {
				if to.loads.Load() > 0 {
					_ = to.Write(t.Context(), store.Write{Token: "other", Ops: []store.Op{change}})
				}
			}
			if _, err := transfer.Copy(t.Context(), transfer.Options{From: begun(t), To: to}); !errors.Is(err, transfer.ErrDiffers) {
				t.Errorf("Copy = %v, want %v", err, transfer.ErrDiffers)
			}
			if _, err := upgrade.Check(t.Context(), to, journal.ShortRun); !errors.Is(err, upgrade.ErrIncomplete) {
				t.Errorf("Check = %v, want %v", err, upgrade.ErrIncomplete)
			}
		})
	}
}

// TestTwoCopiesAtOnce: the one that was begun first is not completed.
func TestTwoCopiesAtOnce(t *testing.T) {
	t.Parallel()
	to := &broken{Store: empty()}
	to.load = func(loads int64) error {
		if loads == 1 {
			_, err := upgrade.Mark(t.Context(), to, true)
			return err
		}
		return nil
	}
	if _, err := transfer.Copy(t.Context(), transfer.Options{From: begun(t), To: to}); store.AsConflict(err) == nil {
		t.Errorf("Copy = %v, want a conflict", err)
	}
	if _, err := upgrade.Check(t.Context(), to, journal.ShortRun); !errors.Is(err, upgrade.ErrIncomplete) {
		t.Errorf("Check = %v, want %v", err, upgrade.ErrIncomplete)
	}
}
