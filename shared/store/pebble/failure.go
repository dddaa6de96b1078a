package pebble

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// failure holds why Pebble can no longer be used, such as a failed sync: what is on the disk is then unknown until the store
// is opened again.
type failure struct {
	once sync.Once
	dead chan struct{} // closed when err is set
	err  atomic.Pointer[error]
}

func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *failure) set(reason string) {
	f.once.Do(func() {
		err := fmt.Errorf("%w: the store has failed and must be opened again: %s", store.ErrUnavailable, reason)
		f.err.Store(&err)
		close(f.dead)
	})
}

// Failed returns a channel that is closed when the store can no longer be used and only a new process can open it again.
func (s *Store) Failed() <-chan struct{} { return s.failure.dead }

// logger receives Pebble's log.
type logger struct{ s *Store }

// Infof drops Pebble's reports about its files.
func (l logger) Infof(string, ...any) {}

// Errorf logs errors of what Pebble tries again, such as a compaction.
func (l logger) Errorf(format string, args ...any) {
	l.s.log.Error("store", "message", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Fatalf is called where Pebble cannot go on, and must not return. It does not end the process: all calls then return that the
// store has failed. On the goroutine of a call it panics, and [Store.leave] recovers. The committer and Pebble's own
// goroutines block for ever, since they may hold Pebble's locks; nobody waits for them then.
func (l logger) Fatalf(format string, args ...any) {
	l.s.fail(strings.TrimSpace(fmt.Sprintf(format, args...)))
	if withinCall() {
		panic(abandoned{})
	}
	select {}
}

func (s *Store) fail(reason string) {
	s.log.Error("the store has failed", "error", reason)
	s.failure.set(reason)
}

// abandoned is the panic value by which Fatalf leaves a call.
type abandoned struct{}

// withinCall reports whether this goroutine runs a method of a Store for a caller.
func withinCall() (within bool) {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(2, stack[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasSuffix(frame.Function, "/store/pebble.(*Store).work") {
			return false
		}
		within = within || strings.Contains(frame.Function, "/store/pebble.(*Store).")
	}
	return within
}

// gaveUp returns the error for a recovered [abandoned]. It panics again with any other value, which is a bug.
func (s *Store) gaveUp(r any) error {
	if r != (abandoned{}) {
		panic(r)
	}
	return s.failure.get()
}

// disk checks the free space, since Pebble cannot go on once a write of its log fails.
type disk struct {
	minFree uint64
	mu      sync.Mutex
	checked time.Time
	err     error
}

// roomFor is how long a measurement of the free space is used; minFree exceeds what can be written meanwhile.
const roomFor = 50 * time.Millisecond

// errFull is why a write is refused while the disk is almost full.
var errFull = fmt.Errorf("%w", store.ErrUnavailable)

// room returns an error if the disk is almost full.
func (s *Store) room() error {
	d := &s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.checked) > roomFor {
		d.checked, d.err = now, s.measure()
	}
	return d.err
}

func (s *Store) measure() error {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if err != nil {
		if os.IsNotExist(err) {
			return fmt.Errorf("%w: %s is gone: %w", store.ErrUnavailable, s.dir, err)
		}
		return nil // a file system that does not tell
	}
	if usage.AvailBytes < s.disk.minFree {
		return fmt.Errorf("%w: the disk of %s has %d MiB left, %d are needed",
			errFull, s.dir, usage.AvailBytes>>20, s.disk.minFree>>20)
	}
	return nil
}
