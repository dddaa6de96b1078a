package pebble_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

// TestNothingIsSeenBeforeItIsDurable: Pebble shows a batch before its sync; this store does not.
func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	var tr trouble
	s := openOn(t, errorfs.Wrap(vfs.NewMem(), &tr))
	mustWrite(t, s, put(slot(1), "one"))

	g := closedGate(&tr)
	written := make(chan error)
	go func() { written <- s.Write(t.Context(), put(slot(2), "two")) }()
	<-g.reached
	if found := find(t, s, slot(2)); found != nil {
		t.Errorf("Get = %v before the sync, want nothing", found)
	}
	page, err := s.Query(t.Context(), store.Range{Table: store.Journal, Partition: slot(1).Partition})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("Query = %d items, %v before the sync, want 1", len(page.Items), err)
	}
	close(g.opened)
	if err := <-written; err != nil {
		t.Fatalf("Write = %v", err)
	}
	if find(t, s, slot(2)) == nil {
		t.Error("Get = nothing after the sync")
	}
}

// TestPowerLoss copies what is durable at random moments while writers write and a reader reads: whatever was
// acknowledged or seen by then is in the copy, the sequencer has passed it, and writes are whole.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	s := openOn(t, disk)
	seen := &positions{}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				ticket, err := s.Reserve(t.Context(), counter, 1, time.Now().UnixMicro())
				if err != nil {
					t.Error(err)
					return
				}
				w := put(slot(ticket.Position), "event")
				w.Ops = append(w.Ops, store.Put(store.Item{Key: state(ticket.Position), Version: 1}, store.Always))
				if err := s.Write(t.Context(), w); err != nil {
					t.Error(err)
					return
				}
				seen.add(ticket.Position)
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			seq, err := s.Sequence(t.Context(), counter, false)
			if err != nil {
				t.Error(err)
				return
			}
			if items, err := s.Get(t.Context(), slot(seq.Position)); err == nil && items[0] != nil {
				seen.add(seq.Position)
			}
		}
	})
	for range 10 {
		more := seen.count() + 50
		eventually(t, "writes go on", func() bool { return seen.count() > more || t.Failed() })
		before := seen.newest(200)
		checkCopy(t, disk.CrashClone(vfs.CrashCloneCfg{}), before)
	}
	cancel()
	group.Wait()
}

// state is an item that is written together with a slot.
func state(position int64) store.Key {
	key := slot(position)
	key.Table = store.Work
	return key
}

func checkCopy(t *testing.T, disk vfs.FS, before []int64) {
	t.Helper()
	s := openOn(t, disk)
	seq, err := s.Sequence(t.Context(), counter, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, position := range before {
		if find(t, s, slot(position)) == nil {
			t.Fatalf("slot %d is lost", position)
		}
		if position > seq.Position {
			t.Fatalf("slot %d is there, and the sequencer would give it again after %d", position, seq.Position)
		}
	}
	for position := max(1, seq.Position-200); position <= seq.Position+64; position++ {
		if slot, state := find(t, s, slot(position)), find(t, s, state(position)); (slot == nil) != (state == nil) {
			t.Fatalf("at %d: slot %v, state %v, of one write", position, slot, state)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

type positions struct {
	mu   sync.Mutex
	list []int64
}

func (p *positions) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, n)
}

// newest returns the n that were added last.
func (p *positions) newest(n int) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list[max(0, len(p.list)-n):])
}

func (p *positions) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list)
}

// TestCallersThatWaitNoLonger: behind a disk that hangs, a write that the committer has not taken ends with its context's error
// and has no effect; one that it has taken is waited for, so that its outcome is known.
func TestCallersThatWaitNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tr trouble
		s := openOn(t, errorfs.Wrap(vfs.NewMem(), &tr))
		g := closedGate(&tr)
		ctx, cancel := context.WithCancel(t.Context())
		var sent, queued, patient error
		var answered atomic.Bool
		var group sync.WaitGroup
		group.Go(func() {
			sent = s.Write(ctx, put(slot(1), "sent"))
			answered.Store(true)
		})
		<-g.reached
		group.Go(func() { queued = s.Write(ctx, put(slot(2), "queued")) })
		group.Go(func() { patient = s.Write(t.Context(), put(slot(3), "patient")) })
		synctest.Wait() // until all of them wait
		cancel()
		synctest.Wait()
		if answered.Load() {
			t.Error("Write has answered before it was decided")
		}
		close(g.opened)
		group.Wait()
		if sent != nil {
			t.Errorf("Write = %v of what has left, want success", sent)
		}
		if !errors.Is(queued, context.Canceled) || errors.Is(queued, store.ErrUnknown) {
			t.Errorf("Write = %v of what waited, want context.Canceled", queued)
		}
		if patient != nil {
			t.Errorf("Write = %v of what waited on, want success", patient)
		}
		got := []bool{find(t, s, slot(1)) != nil, find(t, s, slot(2)) != nil, find(t, s, slot(3)) != nil}
		if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
			t.Errorf("what is stored (-want +got):\n%s", diff)
		}
		for n := range int64(10) { // no result of the withdrawn writes is mistaken for theirs
			mustWrite(t, s, put(slot(10+n), "later"))
			if find(t, s, slot(10+n)) == nil {
				t.Errorf("slot %d was acknowledged and is not there", 10+n)
			}
		}
	})
}

// TestTooLateInTheQueue: a write whose NotAfter passes while it waits for a disk that hangs is not applied.
func TestTooLateInTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tr trouble
		s := openOn(t, errorfs.Wrap(vfs.NewMem(), &tr))
		g := closedGate(&tr)
		var first, late error
		var group sync.WaitGroup
		group.Go(func() { first = s.Write(t.Context(), put(slot(1), "first")) })
		<-g.reached
		w := put(slot(2), "late")
		w.NotAfter = time.Now().Add(time.Second)
		group.Go(func() { late = s.Write(t.Context(), w) })
		<-time.After(2 * time.Second)
		close(g.opened)
		group.Wait()
		if first != nil {
			t.Errorf("Write = %v, want success", first)
		}
		if !errors.Is(late, store.ErrTooLate) {
			t.Errorf("Write = %v, want ErrTooLate", late)
		}
		if find(t, s, slot(2)) != nil {
			t.Error("what was too late is stored")
		}
	})
}

// TestCloseKeepsReservations: only a crash may lose them.
func TestCloseKeepsReservations(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	s := openOn(t, disk)
	ticket, err := s.Reserve(t.Context(), counter, 3, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := openOn(t, disk.CrashClone(vfs.CrashCloneCfg{})).Sequence(t.Context(), counter, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ticket.Sequence, got); diff != "" {
		t.Errorf("sequencer (-want +got):\n%s", diff)
	}
}
