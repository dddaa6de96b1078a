package pebble_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
)

// TestOpenOnAFullDisk: a store that exists can be opened later; the error of a new one says what it needs, and no file is left.
func TestOpenOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.free.Store(1 << 20)
	_, err := pebble.Open("data/store", pebble.Options{FS: disk})
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNoRoom) || !strings.Contains(err.Error(), "a new store needs 64") {
		t.Errorf("Open(new) = %v, want ErrUnavailable that says what is needed", err)
	}
	if _, err := disk.Stat("data"); err == nil {
		t.Error("a directory was made")
	}
	disk.free.Store(1 << 30)
	s := openOn(t, disk)
	mustWrite(t, s, put(slot(1), "before"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disk.free.Store(1 << 20)
	if _, err := pebble.Open("data/store", pebble.Options{FS: disk}); !errors.Is(err, store.ErrNoRoom) || !strings.Contains(err.Error(), "64 are needed") {
		t.Errorf("Open(there) = %v, want ErrNoRoom that says what is needed", err)
	}
	disk.free.Store(1 << 30)
	if find(t, openOn(t, disk), slot(1)) == nil {
		t.Error("what was stored before is lost")
	}
}

// TestTablesOnAFullDisk: while the disk has no space for tables, Pebble repeats them with pauses, which the log shows, and
// nothing is lost; with space again they are written.
func TestTablesOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk, tr := vfs.NewMem(), &trouble{}
	var log lines
	s, err := pebble.Open("data/store", pebble.Options{FS: errorfs.Wrap(disk, tr), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	tried := make(chan struct{}, 1<<20)
	tr.begin(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			tried <- struct{}{}
			return syscall.ENOSPC
		}
		return nil
	})
	value := strings.Repeat("v", store.MaxValue)
	var n int64
	for ; len(tried) == 0; n++ { // until memory is full, and a table is due
		mustWrite(t, s, put(slot(n), value))
	}
	for range 3 {
		<-tried
	}
	if got := log.count(); got > 8 {
		t.Errorf("%d lines after three attempts, want one for each: %s", got, log.text())
	}
	tr.begin(func(errorfs.Op) error { return nil })
	eventually(t, "a table is written", func() bool {
		names, err := disk.List("data/store")
		return err == nil && strings.Contains(strings.Join(names, " "), ".sst")
	})
	for i := range n {
		if find(t, s, slot(i)) == nil {
			t.Fatalf("slot %d is lost", i)
		}
	}
}

// lines counts what is logged.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *lines) count() int { return strings.Count(l.text(), "\n") }
