package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Portable checks that everything of a store can be read, and stored in another as it is. Open returns an empty store each time.
func Portable(t *testing.T, open func(t *testing.T) store.Portable) {
	t.Helper()
	from, to := open(t), open(t)
	equal(t, "records of an empty store", []store.Record(nil), records(t, from))
	want := fill(t, from)
	got := records(t, from)
	equal(t, "Records returns every item and sequencer once", want, got)
	var partly int
	for _, err := range from.Records(t.Context()) {
		if partly++; partly == 2 || err != nil {
			break
		}
	}
	equal(t, "Records ends where its reader does", 2, partly)

	old := item(got[0].Item.Key, 99, "something else")
	if err := to.Write(t.Context(), write(store.Put(old, store.Always))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for batch := range slices.Chunk(got, store.MaxLoad) {
			if err := to.Load(t.Context(), batch); err != nil {
				t.Fatalf("Load = %v", err)
			}
		}
	}
	equal(t, "Load stores records as they are, in place of others, also twice", want, records(t, to))
	s := &suite{store: store.NewChecked(to), run: "portable"}
	for i := range want {
		s.goesOn(t, &want[i])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range to.Records(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Records whose context has ended: %v, want context.Canceled", err)
		}
		break
	}
}

// many is how many items one of the partitions has: more than a page.
const many = 700

// fill writes items and sequencers with all sorts of keys, and returns what Records should return.
func fill(t *testing.T, to store.Portable) (all []store.Record) {
	t.Helper()
	s := &suite{store: store.NewChecked(to)}
	long := strings.Repeat("ä", store.MaxPartition/2-2)
	for n, k := range []store.Key{
		{Table: store.Journal, Partition: "p", Sort: "s"}, {Table: store.Work, Partition: "p", Sort: "s"}, {Table: store.Definitions, Partition: "p", Sort: "s"},
		key("~", "~"), key("~sp", "s"), key("~ip", "s"), key("a\x00b", "\x00"), key("a\x00", "\x01"), key("a", "\x00\x01"), key("日本", "\U0010FFFF"),
		key(long, strings.Repeat("z", store.MaxSort)), key("empty", "-"),
	} {
		i := item(k, int64(n+1), strings.Repeat("v", n))
		if n%2 == 0 {
			i.Expires = time.Unix(4_000_000_000+int64(n), 0).UTC()
		}
		w := write(store.Put(i, store.Absent))
		s.must(t, w)
		i.Token = w.Token
		all = append(all, store.Record{Item: i})
	}
	for n := range many / store.MaxOps {
		w := write()
		for m := range store.MaxOps {
			w.Ops = append(w.Ops, store.Put(item(key("many", fmt.Sprintf("%d.%d", n, m)), 1, "x"), store.Absent))
		}
		s.must(t, w)
		for _, op := range w.Ops {
			op.Item.Token = w.Token
			all = append(all, store.Record{Item: op.Item})
		}
	}
	for n, k := range []store.Key{
		{Table: store.Journal, Partition: "p", Sort: "s"}, key("p", "s"), key("~", "~"), key("~ip", "s"), key("a\x00b", "\x00"), key(store.Passing+"q", "k"),
	} {
		for range n + 1 {
			s.reserve(t, k, 2, micros())
		}
		if n%2 == 0 {
			s.raise(t, k, 1, 17)
		}
		state := s.sequence(t, k)
		all = append(all, store.Record{Item: store.Item{Key: k}, Sequence: &state})
	}
	return sorted(all)
}

func records(t *testing.T, s store.Portable) (all []store.Record) {
	t.Helper()
	for r, err := range s.Records(t.Context()) {
		if err != nil {
			t.Fatalf("Records = %v", err)
		}
		one := *r
		if len(one.Item.Value) == 0 && one.Sequence == nil {
			one.Item.Value = []byte{}
		}
		if !one.Item.Expires.IsZero() {
			one.Item.Expires = one.Item.Expires.UTC()
		}
		all = append(all, one)
	}
	return sorted(all)
}

func sorted(all []store.Record) []store.Record {
	slices.SortFunc(all, func(a, b store.Record) int {
		x, y := a.Item.Key, b.Item.Key
		sequencer := func(r store.Record) int { return map[bool]int{true: 1}[r.Sequence != nil] }
		return cmp.Or(cmp.Compare(x.Table, y.Table), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Sort, y.Sort), sequencer(a)-sequencer(b))
	})
	return all
}

// goesOn checks that a record which was loaded is used as if it had been written there.
func (s *suite) goesOn(t *testing.T, r *store.Record) {
	t.Helper()
	k := r.Item.Key
	if r.Sequence != nil {
		next := s.reserve(t, k, 1, 1)
		equal(t, fmt.Sprintf("the next ticket of %.40q", k.Partition), [2]int64{r.Sequence.Position + 1, r.Sequence.LastID + 1}, [2]int64{next.Position, next.FirstID})
		return
	}
	if k.Partition == "many" {
		return
	}
	again := store.Write{Token: r.Item.Token, Ops: []store.Op{store.Put(r.Item, store.Absent)}}
	if err := s.store.Write(t.Context(), again); err != nil {
		t.Errorf("a repetition of the write of %.40q = %v, want it recognised by its token", k.Partition, err)
	}
	if err := s.store.Write(t.Context(), write(store.Delete(k, store.VersionIs(r.Item.Version)))); err != nil {
		t.Errorf("a write under the version of %.40q = %v", k.Partition, err)
	}
}
