package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

// Options of a Store. The zero value of each field means its default.
type Options struct {
	Log *slog.Logger // default: nothing is logged

	// MinFree is how many bytes must be free on the disk for a write to be accepted; below it, writes return
	// [store.ErrUnavailable] and change nothing, until there is space again. Default 64 MiB.
	MinFree uint64

	// FS is the file system; tests inject faults through it. Default [vfs.Default].
	FS vfs.FS
}

const (
	memTableSize   = 32 << 20
	blockSpace     = 64 << 20
	cacheSize      = blockSpace + 2*memTableSize // Pebble takes the memtables' memory out of the cache's
	defaultMinFree = 64 << 20
)

// Store is the port over one directory. Create it with [Open].
type Store struct {
	db   *pebble.DB
	dir  string
	fs   vfs.FS
	log  *slog.Logger
	disk disk
	full shortage

	published atomic.Pointer[snapshot]
	queue     queue
	recent    *recent
	sequences sequences
	pageSizes pageSizes
	failure   failure

	closing sync.RWMutex // held for reading by every call, for writing by Close
	closed  bool
}

// Open opens the store in dir, which is created if it is not there. The error is [store.ErrLocked] if another process has
// it open, [store.ErrDamaged] if what is in it cannot be read or is not Millrace's, and [store.ErrNoRoom] if the disk has too
// little space for it, or [store.ErrUnavailable] if the store would be new.
func Open(dir string, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.MinFree == 0 {
		o.MinFree = defaultMinFree
	}
	s := &Store{recent: newRecent(), dir: dir, fs: o.FS, log: o.Log.With("store", dir), disk: disk{minFree: o.MinFree}}
	s.queue.open()
	s.failure.dead, s.full.over = make(chan struct{}), make(chan struct{})
	if err := s.claim(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, s.openError(err)
	}
	s.publish()
	go s.work()
	go s.sweep()
	return s, nil
}

// open opens Pebble, which panics where files are missing.
func (s *Store) open() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.gaveUp(r)
		}
	}()
	watched := &watchedFS{FS: s.fs, fail: s.fail, zeros: make([]byte, extension), shortage: &s.full}
	s.db, err = pebble.Open(s.dir, s.options(watched))
	watched.armed.Store(true)
	return err
}

func (s *Store) options(fs vfs.FS) *pebble.Options {
	o := &pebble.Options{
		FS: fs, CacheSize: cacheSize, Logger: logger{s},
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                512,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// enter begins a call, unless the store is closed or has failed; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.closing.RLock()
	err := s.failure.get()
	if s.closed {
		err = store.ErrClosed
	}
	if err != nil {
		s.closing.RUnlock()
	}
	return err
}

// leave ends a call. If Pebble gave it up by a panic, err becomes that of the failed store.
func (s *Store) leave(err *error) {
	s.closing.RUnlock()
	if r := recover(); r != nil {
		*err = s.gaveUp(r)
	}
}

// Date returns this machine's time: one process has no other.
func (s *Store) Date(ctx context.Context) (_ time.Time, err error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.leave(&err)
	return time.Now(), nil
}

// Exclusive returns true: the lock keeps other processes out.
func (s *Store) Exclusive() bool { return true }

// Advances returns false: a ticket costs this process nothing.
func (s *Store) Advances() bool { return false }

// MaxOps returns 600: a batch has no bound, but others wait for it.
func (s *Store) MaxOps() int { return 600 }

// Ping returns nil while writes are accepted.
func (s *Store) Ping(ctx context.Context) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	return s.room()
}

// Close ends the store after the calls under way. If the store has failed, Close returns why: the failed goroutine may hold
// Pebble's locks for ever, and only the end of the process releases the directory.
func (s *Store) Close() error {
	if err := s.failure.get(); err != nil {
		return err
	}
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.full.over)
	kept := s.commit(context.Background(), newPending(nil)) // the newest reservations
	if errors.Is(kept, errFull) {
		kept = nil // they end as they would at a power cut
	}
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	select {
	case err := <-ended:
		if err = errors.Join(kept, err); err != nil {
			return fmt.Errorf("%w: close %s: %w", store.ErrUnavailable, s.dir, err)
		}
		return nil
	case <-s.failure.dead:
		return s.failure.get()
	}
}

// end stops the committer and closes Pebble.
func (s *Store) end() error {
	close(s.queue.stop)
	<-s.queue.stopped
	s.published.Swap(nil).release()
	return s.db.Close()
}
