package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

func TestAllGoesThroughARangeByQueriesOfItsLimit(t *testing.T) {
	t.Parallel()
	s := counted{Store: memory.New(memory.Options{})}
	var want []string
	for n := range 25 {
		sort := fmt.Sprintf("%02d", n)
		item := store.Item{Key: store.Key{Table: store.Work, Partition: "p", Sort: sort}, Version: 1}
		if err := s.Write(t.Context(), store.Write{Token: sort, Ops: []store.Op{store.Put(item, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, sort)
	}
	r := store.Range{Table: store.Work, Partition: "p", Limit: 10}
	if diff := cmp.Diff(want, sorts(t, &s, r)); diff != "" || s.queries != 3 {
		t.Errorf("%d queries, want 3; items (-want +got):\n%s", s.queries, diff)
	}
	r.Backward = true
	slices.Reverse(want)
	if diff := cmp.Diff(want, sorts(t, &s, r)); diff != "" {
		t.Errorf("items backward (-want +got):\n%s", diff)
	}
	s.fail = true
	for item, err := range store.All(t.Context(), &s, r) {
		if item != nil || !errors.Is(err, errOut) {
			t.Errorf("answered %v, %v, want the store's error", item, err)
		}
	}
}

func sorts(t *testing.T, s store.Store, r store.Range) (all []string) {
	t.Helper()
	for item, err := range store.All(t.Context(), s, r) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, item.Key.Sort)
	}
	return all
}

var errOut = errors.New("out")

// counted counts queries, or refuses them.
type counted struct {
	store.Store
	queries int
	fail    bool
}

func (c *counted) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if c.queries++; c.fail {
		return store.Page{}, errOut
	}
	return c.Store.Query(ctx, r)
}
