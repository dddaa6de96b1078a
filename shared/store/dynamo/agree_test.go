package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// The same random calls return the same from DynamoDB and from the store in memory.
func TestAgreesWithTheStoreInMemory(t *testing.T) {
	t.Parallel()
	real := emulated(t, nil)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		h := &history{ctx: context.Background(), real: store.NewChecked(real), model: store.NewChecked(memory.New(memory.Options{})), run: fmt.Sprint(runs)}
		defer h.model.Close()
		t.Repeat(map[string]func(*rapid.T){
			"write":   h.write,
			"again":   h.again,
			"get":     h.get,
			"query":   h.query,
			"remove":  h.remove,
			"reserve": h.reserve,
			"raise":   h.raise,
		})
	})
}

// history is the calls of one run; its partitions are its own.
type history struct {
	ctx         context.Context
	real, model store.Store
	run         string
	writes      []store.Write
	clock       int64
}

// letters sort differently as bytes, as UTF-16 and as folded text.
var letters = []string{"a", "b", "B", "a\x00", "aa", "ü", "~", "\uffff", "\U0001F600"}

func (h *history) key(t *rapid.T) store.Key {
	return store.Key{
		Table:     rapid.SampledFrom([]store.Table{store.Journal, store.Work}).Draw(t, "table"),
		Partition: rapid.SampledFrom([]string{"p", "~p"}).Draw(t, "partition") + h.run,
		Sort:      rapid.SampledFrom(letters).Draw(t, "sort"),
	}
}

func (h *history) condition(t *rapid.T) store.Condition {
	return rapid.SampledFrom([]store.Condition{
		store.Always, store.Absent, store.VersionIs(1), store.VersionIs(2),
	}).Draw(t, "condition")
}

func (h *history) op(t *rapid.T) store.Op {
	key, cond := h.key(t), h.condition(t)
	switch rapid.SampledFrom([]store.OpKind{store.OpPut, store.OpPut, store.OpDelete, store.OpCheck}).Draw(t, "kind") {
	case store.OpDelete:
		return store.Delete(key, cond)
	case store.OpCheck:
		return store.Check(key, cond)
	default:
		put := store.Item{Key: key, Version: rapid.Int64Range(1, 2).Draw(t, "version")}
		put.Value = rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "value")
		if rapid.Bool().Draw(t, "expires") {
			put.Expires = time.Unix(4_000_000_000, 0).UTC()
		}
		return store.Put(put, cond)
	}
}

func (h *history) write(t *rapid.T) {
	ops := rapid.SliceOfNDistinct(rapid.Custom(h.op), 1, 4, func(op store.Op) store.Key { return op.Item.Key }).Draw(t, "ops")
	w := store.Write{Token: fmt.Sprintf("%s.%d", h.run, len(h.writes)), Ops: ops}
	h.writes = append(h.writes, w)
	h.send(t, w)
}

// again sends the newest write once more.
func (h *history) again(t *rapid.T) {
	if len(h.writes) == 0 {
		t.Skip("nothing to send again")
	}
	w := h.writes[len(h.writes)-1]
	if len(w.Ops) > 1 {
		t.Skip("for ten minutes DynamoDB remembers transactions by their tokens, without regard to the items")
	}
	h.send(t, w)
}

func (h *history) send(t *rapid.T, w store.Write) {
	want, got := h.model.Write(h.ctx, w), h.real.Write(h.ctx, w)
	same(t, "Write", want, got)
	if c := store.AsConflict(want); c != nil {
		compare(t, "conflict", c, store.AsConflict(got))
	}
}

func (h *history) get(t *rapid.T) {
	keys := rapid.SliceOfN(rapid.Custom(h.key), 1, 5).Draw(t, "keys")
	want, err := h.model.Get(h.ctx, keys...)
	got, realErr := h.real.Get(h.ctx, keys...)
	same(t, "Get", err, realErr)
	compare(t, "Get", want, got)
}

func (h *history) span(t *rapid.T) store.Range {
	end := rapid.SampledFrom(append([]string{""}, letters...))
	key := h.key(t)
	return store.Range{
		Table: key.Table, Partition: key.Partition, From: end.Draw(t, "from"), To: end.Draw(t, "to"),
		Backward: rapid.Bool().Draw(t, "backward"), Limit: rapid.IntRange(0, 3).Draw(t, "limit"),
	}
}

// query follows the pages, since backends may cut them differently.
func (h *history) query(t *rapid.T) {
	r := h.span(t)
	compare(t, fmt.Sprintf("Query(%+v)", r), h.pages(t, h.model, r), h.pages(t, h.real, r))
}

func (h *history) pages(t *rapid.T, s store.Store, r store.Range) []store.Item {
	items := []store.Item{}
	for {
		page, err := s.Query(h.ctx, r)
		if err != nil {
			t.Fatalf("Query(%+v) = %v", r, err)
		}
		if r.Limit > 0 && len(page.Items) > r.Limit || page.More && len(page.Items) == 0 {
			t.Fatalf("Query(%+v) = %d items, more %v", r, len(page.Items), page.More)
		}
		items = append(items, page.Items...)
		if !page.More {
			return items
		}
		last := page.Items[len(page.Items)-1].Key.Sort
		if r.Backward {
			r.To = last
		} else {
			r.From = last + "\x00"
		}
	}
}

func (h *history) remove(t *rapid.T) {
	r := h.span(t)
	same(t, "Remove", h.model.Remove(h.ctx, r), h.real.Remove(h.ctx, r))
}

func (h *history) reserve(t *rapid.T) {
	key := h.key(t)
	// In steps of more than the 20 ms within which a contended ticket may take ids behind the clock.
	h.clock += rapid.SampledFrom([]int64{-30_000, 0, 30_000, 60_000}).Draw(t, "time passes")
	now, ids := time.Now().Add(-time.Hour).UnixMicro()+h.clock, rapid.IntRange(0, 3).Draw(t, "ids")
	want, err := h.model.Reserve(h.ctx, key, ids, now)
	got, realErr := h.real.Reserve(h.ctx, key, ids, now)
	same(t, "Reserve", err, realErr)
	want.Sent, want.Sends, got.Sent, got.Sends = time.Time{}, 0, time.Time{}, 0
	compare(t, "Reserve", want, got)
	h.sequence(t, key)
}

func (h *history) raise(t *rapid.T) {
	key, position := h.key(t), rapid.Int64Range(1, 9).Draw(t, "position")
	same(t, "Raise", h.model.Raise(h.ctx, key, position, position), h.real.Raise(h.ctx, key, position, position))
	h.sequence(t, key)
}

func (h *history) sequence(t *rapid.T, key store.Key) {
	want, err := h.model.Sequence(h.ctx, key, false)
	got, realErr := h.real.Sequence(h.ctx, key, false)
	same(t, "Sequence", err, realErr)
	compare(t, "Sequence", want, got)
}

func compare(t *rapid.T, what string, want, got any) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-memory +DynamoDB):\n%s", what, diff)
	}
}

// same demands errors of the same kind.
func same(t *rapid.T, what string, want, got error) {
	kind := func(err error) string {
		if store.AsConflict(err) != nil {
			return "conflict"
		}
		for _, known := range []error{store.ErrInvalid, store.ErrClock} {
			if errors.Is(err, known) {
				return known.Error()
			}
		}
		return strings.TrimSpace(fmt.Sprint(err))
	}
	if kind(want) != kind(got) {
		t.Fatalf("%s = %v from memory, %v from DynamoDB", what, want, got)
	}
}
