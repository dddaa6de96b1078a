package tally_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
	"github.com/millrace/millrace/shared/store/tally"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return tally.New(memory.New(memory.Options{})) },
		storetest.Capabilities{Exclusive: true})
}

// TestCalls: each call counts once, by its method, whatever came of it.
func TestCalls(t *testing.T) {
	t.Parallel()
	s, ctx := tally.New(memory.New(memory.Options{})), t.Context()
	key := store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	put := store.Write{Token: "t", Ops: []store.Op{store.Put(store.Item{Key: key, Version: 1}, store.VersionIs(7))}}
	_, _ = s.Get(ctx, key)
	_, _ = s.Query(ctx, store.Range{Table: store.Work, Partition: "p"})
	_, _ = s.Query(ctx, store.Range{Table: store.Work, Partition: "p"})
	_ = s.Write(ctx, put) // a conflict
	_ = s.Remove(ctx, store.Range{Table: store.Work, Partition: "p"})
	_, _ = s.Reserve(ctx, key, 1, time.Now().UnixMicro())
	_, _ = s.Sequence(ctx, key, true)
	_ = s.Raise(ctx, key, 1, 1)
	_, _ = s.Date(ctx)
	_ = s.Ping(ctx)
	want := map[string]int64{
		"get": 1, "query": 2, "write": 1, "remove": 1, "reserve": 1, "sequence": 1, "raise": 1, "date": 1, "ping": 1,
	}
	if diff := cmp.Diff(want, s.Calls()); diff != "" {
		t.Errorf("Calls (-want +got):\n%s", diff)
	}
}
