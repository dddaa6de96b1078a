package pebble_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
)

// TestBrokenDisk: whatever operation of the disk fails, every call returns, no write is acknowledged that is not
// there afterwards, the store says that it has failed, and it can be opened again.
func TestBrokenDisk(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(errorfs.Op) bool{
		"sync of the log":  syncsLog,
		"write of the log": func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") },
		"a new log":        func(op errorfs.Op) bool { return creates(op) && strings.HasSuffix(op.Path, ".log") },
		"write of the catalog": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST")
		},
		"sync of the catalog": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, "MANIFEST")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tr trouble
			disk := vfs.NewCrashableMem()
			s := openOn(t, errorfs.Wrap(disk, &tr))
			mustWrite(t, s, put(slot(1), "before"))
			tr.begin(func(op errorfs.Op) error {
				if broken(op) {
					return syscall.EIO
				}
				return nil
			})
			acknowledged := writeUntilFailed(t, s)
			<-s.Failed()
			isDead(t, s)
			if err := s.Close(); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Close = %v, want ErrUnavailable", err)
			}
			again := openOn(t, disk.CrashClone(vfs.CrashCloneCfg{}))
			for _, position := range append(acknowledged, 1) {
				if find(t, again, slot(position)) == nil {
					t.Errorf("slot %d was acknowledged and is lost", position)
				}
			}
		})
	}
}

func creates(op errorfs.Op) bool {
	return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite
}

// writeUntilFailed has writers write much, until each of them has seen an error.
func writeUntilFailed(t *testing.T, s *pebble.Store) (acknowledged []int64) {
	t.Helper()
	value := strings.Repeat("v", 300<<10)
	var mu sync.Mutex
	var group sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		group.Go(func() {
			for n := next.Add(1) + 1; n < 2000; n = next.Add(1) + 1 {
				err := s.Write(t.Context(), put(slot(n), value))
				if err != nil {
					if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("Write = %v, want ErrUnknown or ErrUnavailable", err)
					}
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, n)
				mu.Unlock()
			}
			t.Error("all writes succeeded")
		})
	}
	group.Wait()
	return acknowledged
}

// isDead demands that every method returns that the store cannot be used.
func isDead(t *testing.T, s *pebble.Store) {
	t.Helper()
	ctx := t.Context()
	_, get := s.Get(ctx, slot(1))
	_, query := s.Query(ctx, store.Range{Table: store.Journal, Partition: "p"})
	_, reserve := s.Reserve(ctx, counter, 1, 1)
	_, sequence := s.Sequence(ctx, counter, false)
	_, date := s.Date(ctx)
	for name, err := range map[string]error{
		"Get": get, "Query": query, "Reserve": reserve, "Sequence": sequence, "Date": date, "Ping": s.Ping(ctx),
		"Write": s.Write(ctx, put(slot(1), "x")), "Raise": s.Raise(ctx, counter, 1, 1),
		"Remove": s.Remove(ctx, store.Range{Table: store.Journal, Partition: "p"}),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s = %v, want ErrUnavailable", name, err)
		}
	}
}

// TestFilesThatVanish: a read that needs a deleted file returns.
func TestFilesThatVanish(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	s := openOn(t, disk)
	value := strings.Repeat("v", 300<<10)
	for n := range int64(150) { // more than memory holds
		mustWrite(t, s, put(slot(n), value))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openOn(t, disk)
	names, err := disk.List("data/store")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			if err := disk.Remove("data/store/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Pebble may have opened the file or hold the block before it is deleted, so either the item or an error; never no item.
	found, err := again.Get(t.Context(), slot(0))
	if err == nil && (found[0] == nil || string(found[0].Value) != value) || err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get = %v, want the item or ErrUnavailable", err)
	}
}

// smallDisk is a file system whose free space the test sets.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load()}, nil
}

// TestFullDisk: while there is no space, writes and reservations are refused and change nothing, reads go on; with space
// again, so do writes. A store on a full disk can be closed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.free.Store(1 << 30)
	s := openOn(t, disk)
	mustWrite(t, s, put(slot(1), "before"))
	disk.free.Store(1 << 20)
	eventually(t, "the store is not ready", func() bool { return s.Ping(t.Context()) != nil })
	_, reserve := s.Reserve(t.Context(), counter, 1, 1)
	for name, err := range map[string]error{
		"Write": s.Write(t.Context(), put(slot(2), "x")), "Reserve": reserve, "Ping": s.Ping(t.Context()),
		"Raise": s.Raise(t.Context(), counter, 1, 1), "Remove": s.Remove(t.Context(), store.Range{Table: store.Journal, Partition: "p"}),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s = %v on a full disk, want ErrUnavailable", name, err)
		}
	}
	if find(t, s, slot(1)) == nil || find(t, s, slot(2)) != nil {
		t.Error("the full disk has changed what is stored")
	}
	disk.free.Store(1 << 30)
	eventually(t, "the store is ready", func() bool { return s.Ping(t.Context()) == nil })
	mustWrite(t, s, put(slot(2), "after"))

	if _, err := s.Reserve(t.Context(), counter, 1, 1); err != nil {
		t.Fatal(err)
	}
	disk.free.Store(1 << 20)
	eventually(t, "the store is not ready", func() bool { return s.Ping(t.Context()) != nil })
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v on a full disk, want nil: nothing acknowledged is lost", err)
	}
	disk.free.Store(1 << 30)
	if find(t, openOn(t, disk), slot(2)) == nil {
		t.Error("what was stored before the close is lost")
	}
}

// TestLargeWrites: many large writes at once neither fail nor starve.
func TestLargeWrites(t *testing.T) {
	t.Parallel()
	s := openOn(t, vfs.NewMem())
	value := strings.Repeat("v", store.MaxValue)
	var group sync.WaitGroup
	for n := range int64(40) {
		group.Go(func() {
			w := store.Write{Token: fmt.Sprint(n)}
			for i := range int64(8) {
				w.Ops = append(w.Ops, store.Put(store.Item{Key: slot(n*8 + i), Version: 1, Value: []byte(value)}, store.Absent))
			}
			if err := s.Write(t.Context(), w); err != nil {
				t.Errorf("Write = %v", err)
			}
		})
	}
	group.Wait()
	for n := range int64(320) {
		if found := find(t, s, slot(n)); found == nil || len(found.Value) != store.MaxValue {
			t.Errorf("slot %d is not there, or not whole", n)
		}
	}
}
