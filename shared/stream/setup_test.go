package stream_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/stream"
)

// bench holds streams, and the store and the journal below them.
type bench struct {
	*stream.Streams
	t       testing.TB
	store   store.Store
	journal *journal.Journal
}

// on runs a test on each embedded store.
func on(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, setup(t, memory.New(memory.Options{})))
	})
	t.Run("pebble", func(t *testing.T) {
		t.Parallel()
		test(t, setup(t, openPebble(t)))
	})
}

func openPebble(t testing.TB) store.Store {
	t.Helper()
	s, err := pebble.Open("data/store", pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func setup(t testing.TB, s store.Store) *bench {
	t.Helper()
	b := &bench{t: t, store: s}
	b.Streams, b.journal = b.process()
	return b
}

// process returns another process's access to the same streams.
func (b *bench) process() (*stream.Streams, *journal.Journal) {
	j := journal.Open(b.store, journal.Options{})
	b.t.Cleanup(func() { _ = j.Close() })
	return stream.Open(stream.Options{Store: b.store, Journal: j}), j
}

func uuid(n int) stream.UUID {
	u, err := stream.ParseUUID(fmt.Sprintf("2480b859-e08a-4414-9c7d-%012x", n))
	if err != nil {
		panic(err)
	}
	return u
}

var (
	owner    = uuid(1)
	consumer = uuid(0xC)
)

// named returns an event whose body holds its number n.
func named(name string, n int) stream.Event {
	return stream.Event{Name: name, Version: 1, Body: fmt.Appendf(nil, `"payload":{"n":%d}`, n)}
}

// append appends events of these names, one call each.
func (b *bench) append(to string, names ...string) []stream.Appended {
	b.t.Helper()
	var all []stream.Appended
	for i, name := range names {
		r, err := b.Append(b.t.Context(), stream.Append{Stream: to, Producer: owner, Events: []stream.Event{named(name, i)}})
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, r.Events...)
	}
	return all
}

// read returns what a consumer reads, and each event as NAME SEQUENCE.
func (b *bench) read(from, name string, limit int) (all []stream.Stored, labels []string) {
	b.t.Helper()
	all, err := b.Read(b.t.Context(), stream.Reading{Stream: from, Consumer: consumer, Name: name, Limit: limit})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range all {
		labels = append(labels, fmt.Sprint(e.Name, " ", e.Sequence))
	}
	return all, labels
}

func (b *bench) ack(from string, id stream.UUID) int64 {
	b.t.Helper()
	n, err := b.Acknowledge(b.t.Context(), from, consumer, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}
