package pebble_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
)

var counter = store.Key{Table: store.Journal, Partition: "H#main", Sort: "0"}

func slot(position int64) store.Key {
	return store.Key{Table: store.Journal, Partition: fmt.Sprintf("J#main#%013d", position/256), Sort: fmt.Sprintf("%016d", position)}
}

// put is a Write of one fresh item, with a token of its own.
func put(key store.Key, value string) store.Write {
	return store.Write{
		Token: key.Sort + value,
		Ops:   []store.Op{store.Put(store.Item{Key: key, Version: 1, Value: []byte(value)}, store.Absent)},
	}
}

// openOn opens a store on a file system of the test's; a store that has failed is not closed.
func openOn(tb testing.TB, fs vfs.FS) *pebble.Store {
	tb.Helper()
	s, err := pebble.Open("data/store", pebble.Options{FS: fs})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() }) // tests of failures look at its error themselves
	return s
}

func mustWrite(tb testing.TB, s *pebble.Store, writes ...store.Write) {
	tb.Helper()
	for _, w := range writes {
		if err := s.Write(tb.Context(), w); err != nil {
			tb.Fatalf("Write = %v", err)
		}
	}
}

func find(tb testing.TB, s *pebble.Store, key store.Key) *store.Item {
	tb.Helper()
	items, err := s.Get(tb.Context(), key)
	if err != nil {
		tb.Fatalf("Get = %v", err)
	}
	return items[0]
}

// trouble makes operations of a file system fail or wait, once the test sets it.
type trouble struct {
	cause atomic.Pointer[func(errorfs.Op) error]
}

func (tr *trouble) MaybeError(op errorfs.Op) error {
	if cause := tr.cause.Load(); cause != nil {
		return (*cause)(op)
	}
	return nil
}

func (tr *trouble) String() string { return "trouble" }

func (tr *trouble) begin(cause func(errorfs.Op) error) { tr.cause.Store(&cause) }

func syncsLog(op errorfs.Op) bool {
	return strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData)
}

// gate holds up the syncs of the log until it is opened.
type gate struct {
	reached chan struct{} // gets one element per sync that arrives
	opened  chan struct{}
}

func closedGate(tr *trouble) *gate {
	g := &gate{reached: make(chan struct{}, 100), opened: make(chan struct{})}
	tr.begin(func(op errorfs.Op) error {
		if syncsLog(op) {
			g.reached <- struct{}{}
			<-g.opened
		}
		return nil
	})
	return g
}

// eventually waits until something is so.
func eventually(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); {
		if time.Now().After(deadline) {
			tb.Fatalf("after two minutes it is not so that %s", what)
		}
		<-time.After(time.Millisecond)
	}
}
