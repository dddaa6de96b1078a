package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// history runs the same random operations on the store and on the one in memory and demands the same results.
func (s *suite) history(t *testing.T) {
	t.Parallel()
	steps := 60
	if s.able.Costly {
		rapidOnce(t, func(rt *rapid.T) { s.walk(t, rt, steps) })
		return
	}
	rapid.Check(t, func(rt *rapid.T) { s.walk(t, rt, steps) })
}

// rapidOnce draws a single example, for stores on which each call takes long.
func rapidOnce(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	seed := rapid.Custom(func(rt *rapid.T) int { property(rt); return 0 })
	seed.Example(1)
}

func (s *suite) walk(t *testing.T, rt *rapid.T, steps int) {
	oracle := memory.New(memory.Options{})
	w := &walker{suite: s, t: t, rt: rt, partition: s.partition(), oracle: oracle}
	now := micros()
	for n := range steps {
		w.now = now + int64(n)
		switch rapid.IntRange(0, 9).Draw(rt, "step") {
		case 0, 1, 2, 3, 4:
			w.write()
		case 5:
			w.get()
		case 6, 7:
			w.query()
		case 8:
			w.reserve()
		case 9:
			w.remove()
		}
	}
}

type walker struct {
	*suite
	t         *testing.T
	rt        *rapid.T
	partition string
	oracle    store.Store
	now       int64
	past      []store.Write // to be repeated
}

func (w *walker) key() store.Key {
	return key(w.partition+rapid.SampledFrom([]string{"", "\x00", "b"}).Draw(w.rt, "partition"), w.sort())
}

func (w *walker) sort() string { return rapid.SampledFrom(odd[:7]).Draw(w.rt, "sort") }

func (w *walker) same(what string, want, got any, wantErr, gotErr error) {
	w.t.Helper()
	if errors.Is(wantErr, store.ErrBusy) != errors.Is(gotErr, store.ErrBusy) || (wantErr == nil) != (gotErr == nil) {
		w.rt.Fatalf("%s: the oracle answers %v, the store %v", what, wantErr, gotErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.rt.Fatalf("%s (-oracle +store):\n%s", what, diff)
	}
}

func (w *walker) write() {
	next := w.draw()
	if len(w.past) > 0 && rapid.IntRange(0, 5).Draw(w.rt, "repeat") == 0 {
		next = rapid.SampledFrom(w.past).Draw(w.rt, "earlier")
	}
	w.past = append(w.past, next)
	want, got := w.oracle.Write(w.t.Context(), next), w.store.Write(w.t.Context(), next)
	w.same("Write", store.AsConflict(want), store.AsConflict(got), want, got)
}

func (w *walker) draw() store.Write {
	keys := map[store.Key]bool{}
	var ops []store.Op
	for range rapid.IntRange(1, 4).Draw(w.rt, "ops") {
		k := w.key()
		if keys[k] {
			continue
		}
		keys[k] = true
		version := rapid.Int64Range(1, 4).Draw(w.rt, "version")
		cond := rapid.SampledFrom([]store.Condition{
			store.Always, store.Always, store.Absent, store.VersionIs(rapid.Int64Range(1, 4).Draw(w.rt, "is")),
		}).Draw(w.rt, "condition")
		kind := rapid.IntRange(0, 5).Draw(w.rt, "kind")
		switch {
		case kind == 0:
			ops = append(ops, store.Delete(k, cond))
		case kind == 1 && !cond.IsAlways():
			ops = append(ops, store.Check(k, cond))
		default:
			ops = append(ops, store.Put(item(k, version, fmt.Sprint(w.now)), cond))
		}
	}
	return write(ops...)
}

func (w *walker) get() {
	keys := []store.Key{w.key(), w.key()}
	want, wantErr := w.oracle.Get(w.t.Context(), keys...)
	got, gotErr := w.store.Get(w.t.Context(), keys...)
	w.same("Get", want, got, wantErr, gotErr)
}

func (w *walker) query() {
	r := store.Range{
		Table: store.Work, Partition: w.key().Partition,
		Backward: rapid.Bool().Draw(w.rt, "backward"), Limit: rapid.IntRange(0, 3).Draw(w.rt, "limit"),
	}
	if rapid.Bool().Draw(w.rt, "from") {
		r.From = w.sort()
	}
	if rapid.Bool().Draw(w.rt, "to") {
		r.To = w.sort()
	}
	want, wantErr := w.oracle.Query(w.t.Context(), r)
	got, gotErr := w.store.Query(w.t.Context(), r)
	w.same(fmt.Sprintf("Query(%+v)", r), sorts(want), sorts(got), wantErr, gotErr)
}

func (w *walker) reserve() {
	k := key(w.partition, "sequencer")
	ids, now := rapid.IntRange(1, 5).Draw(w.rt, "ids"), w.now+rapid.Int64Range(-100, 100).Draw(w.rt, "skew")
	want, wantErr := w.oracle.Reserve(w.t.Context(), k, ids, now)
	got, gotErr := w.store.Reserve(w.t.Context(), k, ids, now)
	w.same("Reserve", [2]any{want.Sequence, want.FirstID}, [2]any{got.Sequence, got.FirstID}, wantErr, gotErr)
}

func (w *walker) remove() {
	r := store.Range{Table: store.Work, Partition: w.key().Partition, From: w.sort(), To: w.sort()}
	w.same("Remove", nil, nil, w.oracle.Remove(w.t.Context(), r), w.store.Remove(w.t.Context(), r))
}
