package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

// Options of a Store. The zero value of each field means its default.
type Options struct {
	Log *slog.Logger // default: nothing is logged

	// MinFree is how much room the disk must have for a write to be accepted; below it, writes answer
	// [store.ErrUnavailable] and change nothing, until there is room again. Default 64 MiB.
	MinFree uint64

	// FS is the file system. Default: the machine's. Tests inject faults through it.
	FS vfs.FS
}

// format marks a directory as ours, and says how it is laid out.
const format = "millrace 1"

var formatKey = []byte{kindMeta, 'f'}

const (
	memTableSize   = 32 << 20
	cacheSize      = 64 << 20
	defaultMinFree = 64 << 20
)

// Store is the port over one directory. Create it with [Open].
type Store struct {
	db   *pebble.DB
	dir  string
	fs   vfs.FS
	log  *slog.Logger
	disk disk

	published atomic.Pointer[snapshot]
	queue     queue
	sequences sequences
	pageSizes pageSizes
	failure   failure

	closing sync.RWMutex // held for reading by every call, for writing by Close
	closed  bool
}

// Open opens the store in dir, which is created if it is not there. The error is [store.ErrLocked] if another process has
// it open, and [store.ErrDamaged] if what is in it cannot be read or is not Millrace's.
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
	s := &Store{dir: dir, fs: o.FS, log: o.Log.With("store", dir), disk: disk{minFree: o.MinFree}}
	s.failure.dead = make(chan struct{})
	if err := s.refuseForeign(); err != nil {
		return nil, err
	}
	db, err := pebble.Open(dir, s.options())
	if err != nil {
		return nil, s.openError(err)
	}
	s.db = db
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		FS: s.fs, CacheSize: cacheSize, Logger: logger{s},
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

// refuseForeign answers an error if there are files in the directory that no store of ours leaves there.
func (s *Store) refuseForeign() error {
	names, err := s.fs.List(s.dir)
	if errors.Is(err, fs.ErrNotExist) || os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, s.dir, err)
	}
	for _, name := range names {
		if !ours(name) {
			return fmt.Errorf("%w: %s holds %s, which is not Millrace's; name an empty directory", store.ErrDamaged, s.dir, name)
		}
	}
	return nil
}

// ours reports whether a file has a name that Pebble gives.
func ours(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".log", ".blob", ".dbtmp", ".crash":
		return true
	}
	for _, prefix := range []string{"MANIFEST", "OPTIONS", "CURRENT", "LOCK", "marker.", "lost+found", "temporary"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (s *Store) openError(err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held by current process") {
		return fmt.Errorf("%w: %s: end the other process, or name another directory", store.ErrLocked, s.dir)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, s.dir, err)
	}
	return fmt.Errorf("%w: %s: %w", store.ErrDamaged, s.dir, err)
}

// begin checks the format, marks a new directory, and publishes the first snapshot.
func (s *Store) begin() error {
	found, closer, err := s.db.Get(formatKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		if err := s.mark(); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, s.dir, err)
	default:
		text := string(found)
		_ = closer.Close() // releases memory only
		if text != format {
			return fmt.Errorf("%w: %s has the format %q, this program reads %q", store.ErrDamaged, s.dir, text, format)
		}
	}
	s.publish()
	return nil
}

// mark writes the format into an empty directory, and refuses one that holds another program's data.
func (s *Store) mark() error {
	iter, err := s.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, s.dir, err)
	}
	foreign := iter.First()
	if err := iter.Close(); err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, s.dir, err)
	}
	if foreign {
		return fmt.Errorf("%w: %s holds another program's data; name an empty directory", store.ErrDamaged, s.dir)
	}
	return s.db.Set(formatKey, []byte(format), pebble.Sync)
}

// enter begins a call, unless the store is closed or has failed; leave ends it.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.closing.RLock()
	if s.closed {
		s.closing.RUnlock()
		return nil, store.ErrClosed
	}
	if err := s.failure.get(); err != nil {
		s.closing.RUnlock()
		return nil, err
	}
	return s.closing.RUnlock, nil
}

// Date answers this machine's time: one process has no other.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	return time.Now(), nil
}

// Exclusive answers true: the lock keeps other processes out.
func (s *Store) Exclusive() bool { return true }

// Ping answers nil while writes are accepted.
func (s *Store) Ping(ctx context.Context) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.room()
}

// Close ends the store after the calls under way.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.failure.get(); err != nil {
		return err // what failed may hold Pebble's locks for ever; the process's end releases the directory
	}
	s.published.Swap(nil).release()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("pebble: close %s: %w", s.dir, err)
	}
	return nil
}
