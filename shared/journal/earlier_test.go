package journal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// numbered appends so many events, the nth of which has one of the paths, and returns their ids.
func numbered(t *testing.T, j *journal.Journal, count int, path func(n int) string) (ids []event.ID) {
	t.Helper()
	const atOnce = 4096
	for len(ids) < count {
		events := make([]event.Event, atOnce)
		for i := range events {
			n := len(ids) + i
			events[i] = event.Event{Type: "Numbered", Key: event.Key{Path: path(n)}, Fields: fmt.Appendf(nil, `"n":%d`, n)}
		}
		r, err := j.Emit(t.Context(), events, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.EventIDs()...)
		if err := j.SnapshotAt(t.Context(), "numbered", ids[len(ids)-1], journal.Part{}, func(string, []byte) {}); err != nil { // folds them
			t.Fatal(err)
		}
	}
	return ids
}

// layerReads counts the parts of generations that are read.
type layerReads struct {
	store.Store
	parts int
}

// Get reads items.
func (l *layerReads) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	for _, key := range keys {
		if strings.HasPrefix(key.Partition, "G#main#") {
			l.parts++
		}
	}
	return l.Store.Get(ctx, keys...)
}

// A process that has folded a million and a half events tells what was at any of them, and folds a small part of them for it; so does
// one that has just started from a generation of these events, which it reads once.
func TestWhatWasLongAgo(t *testing.T) {
	t.Parallel()
	const objects, count, most = 97, 3 << 19, 1 << 17
	folded := 0
	numbers := journal.Fold{Name: "numbered", Apply: func(s *journal.State, e *event.Event) {
		folded++
		s.Put(strings.Clone(e.Key.Path), []byte(strings.TrimPrefix(string(e.Fields), `"n":`)))
	}}
	s := &layerReads{Store: memory.New(memory.Options{})}
	o := journal.Options{Folds: []journal.Fold{numbers}, Retention: journal.Retention{Events: 2 * count}}
	old, fresh := open(t, s, o), open(t, s, o)
	ids := numbered(t, old, count, func(n int) string { return "/" + strconv.Itoa(n%objects) })
	luck := rand.New(rand.NewPCG(1, 2))
	check := func(j *journal.Journal) {
		t.Helper()
		at, seen := luck.IntN(count), 0
		folded = 0
		err := j.SnapshotAt(t.Context(), numbers.Name, ids[at], journal.Part{}, func(key string, value []byte) {
			seen++
			which, _ := strconv.Atoi(key[1:])
			if want := at - ((at-which)%objects+objects)%objects; string(value) != strconv.Itoa(want) {
				t.Errorf("at event %d, %s was %s, want %d", at, key, value, want)
			}
		})
		if err != nil || seen != min(objects, at+1) {
			t.Fatalf("at event %d there were %d objects, %v", at, seen, err)
		}
		if folded > most {
			t.Errorf("at event %d: %d events were folded, want at most %d", at, folded, most)
		}
	}
	for range 30 {
		check(old)
	}
	if _, err := fresh.Sweep(t.Context()); err != nil { // stores changes as it goes, since it is late
		t.Fatal(err)
	}
	newest := open(t, s, o)
	shown(t, newest, numbers.Name)
	s.parts = 0
	for range 30 {
		check(newest)
	}
	if s.parts > 0 {
		t.Errorf("%d parts of generations were read again", s.parts)
	}
}

// However much the states that a process had differ from each other, they take no more than 64 MiB beside the present one.
func TestWhatWasTakesLittleMemory(t *testing.T) { // not parallel: it measures the heap
	const objects, each, count = 100_000, 200, 12 << 15
	const size, bound = objects * (each + 8), 64 << 20
	numbers := journal.Fold{Name: "numbered", Apply: func(s *journal.State, e *event.Event) {
		s.Put(strings.Clone(e.Key.Path), fmt.Appendf(nil, "%*d", each, e.ID))
	}}
	var s store.Store = memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: []journal.Fold{numbers}})
	numbered(t, j, count, func(n int) string { return strconv.Itoa(n * 7919 % objects) })
	with := int64(heap())
	_ = j.Close()
	runtime.KeepAlive(j)
	j = nil
	taken := with - int64(heap())
	runtime.KeepAlive(s)
	t.Logf("%d MB, of a state of %d MB", taken>>20, size>>20)
	if taken > bound+3*size {
		t.Errorf("a process keeps %d MB, of a state of %d MB", taken>>20, size>>20)
	}
}
