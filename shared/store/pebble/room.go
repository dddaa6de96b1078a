package pebble

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

// mayOpen returns an error if the disk has too little space to open the store: [store.ErrNoRoom] if the store exists, otherwise
// an error that says what to do. Opening writes the logs' contents into tables, and Pebble repeats for ever, without a pause,
// what the disk has no space for.
func (s *Store) mayOpen(there bool) error {
	usage, err := s.fs.GetDiskUsage(s.nearest())
	if err != nil {
		return nil // a file system that does not tell
	}
	need := s.disk.minFree
	if usage.AvailBytes >= need {
		return nil
	}
	if there {
		return fmt.Errorf("%w: the disk of %s has %d MiB left, %d are needed", store.ErrNoRoom, s.dir, usage.AvailBytes>>20, need>>20)
	}
	return s.noStart(fmt.Errorf("the disk has %d MiB left, and a new store needs %d", usage.AvailBytes>>20, need>>20))
}

// noStart returns the error for a new store on a disk without space. It is not ErrNoRoom, since no data is worth waiting for.
func (s *Store) noStart(err error) error {
	return fmt.Errorf("%w: %s: %w: make room, or name a directory on another disk", store.ErrUnavailable, s.dir, err)
}

// noRoom reports whether an error says that the disk is full, or the user's share of it.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// nearest returns the directory of the store, or its nearest parent that exists.
func (s *Store) nearest() string {
	dir := s.dir
	for {
		above := s.fs.PathDir(dir)
		if _, err := s.fs.Stat(dir); err == nil || above == dir {
			return dir
		}
		dir = above
	}
}

// The pauses between two attempts to write a table to a disk without space.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// shortage makes Pebble pause, longer each time, before it repeats a table that the disk had no space for.
type shortage struct {
	mu    sync.Mutex
	pause time.Duration // before the next table; 0: none
	over  chan struct{} // closed by Close, which ends the waiting
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// wait waits for the current pause.
func (s *shortage) wait() {
	s.mu.Lock()
	pause := s.pause
	s.mu.Unlock()
	if pause == 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.over:
	}
}

// note doubles the pause if err, of writing to a table, says that the disk is full. It returns err.
func (s *shortage) note(err error) error {
	if noRoom(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pause = min(max(2*s.pause, firstPause), lastPause)
	}
	return err
}

// end notes the result of a table's last sync: without an error the pause ends.
func (s *shortage) end(err error) error {
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pause = 0
	}
	return s.note(err)
}

// table is a file that Pebble writes a table to.
type table struct {
	vfs.File
	shortage *shortage
}

// Write adds to the table.
func (t *table) Write(p []byte) (int, error) {
	n, err := t.File.Write(p)
	return n, t.shortage.note(err)
}

// Sync ends the table.
func (t *table) Sync() error { return t.shortage.end(t.File.Sync()) }
