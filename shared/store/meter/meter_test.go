package meter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

// overhead is what an item of these tests takes besides its value: pk "p", sk of one letter, v of one digit, t "t", d.
const overhead = (2 + 1) + (2 + 1) + (1 + 2) + (1 + 1) + 1

func key(sort string) store.Key { return store.Key{Table: store.Work, Partition: "p", Sort: sort} }

// item returns an item of exactly that many bytes.
func item(sort string, bytes int) store.Item {
	return store.Item{Key: key(sort), Version: 1, Value: make([]byte, bytes-overhead)}
}

func write(ops ...store.Op) store.Write { return store.Write{Token: "t", Ops: ops} }

// filled returns a meter over items that cost nothing yet.
func filled(t *testing.T, items ...store.Item) *meter.Meter {
	t.Helper()
	m := meter.New(memory.New(memory.Options{}))
	t.Cleanup(func() { m.Close() })
	for _, item := range items {
		if err := m.Write(t.Context(), write(store.Put(item, store.Absent))); err != nil {
			t.Fatal(err)
		}
	}
	m.Reset()
	return m
}

func TestWritePrices(t *testing.T) {
	t.Parallel()
	const kb = 1024
	for _, c := range []struct {
		name string
		ops  []store.Op
		want meter.Cost
	}{
		{"a new item of 1 KB", []store.Op{store.Put(item("n", kb), store.Absent)}, meter.Cost{WCU: 1}},
		{"a new item of 1 KB and a byte", []store.Op{store.Put(item("n", kb+1), store.Absent)}, meter.Cost{WCU: 2}},
		{"a smaller item in place of one of 3 KB", []store.Op{store.Put(item("a", kb), store.Always)}, meter.Cost{WCU: 3}},
		{"a larger item in place of one of 3 KB", []store.Op{store.Put(item("a", 5*kb), store.VersionIs(1))}, meter.Cost{WCU: 5}},
		{"a condition that fails for an item of 3 KB", []store.Op{store.Put(item("a", kb), store.Absent)}, meter.Cost{WCU: 3}},
		{"a condition that fails for no item", []store.Op{store.Put(item("n", 2*kb), store.VersionIs(4))}, meter.Cost{WCU: 2}},
		{"a deletion of 3 KB", []store.Op{store.Delete(key("a"), store.Always)}, meter.Cost{WCU: 3}},
		{"a deletion of nothing", []store.Op{store.Delete(key("n"), store.Always)}, meter.Cost{WCU: 1}},
		{"a lone check, which is a read", []store.Op{store.Check(key("b"), store.VersionIs(1))}, meter.Cost{RCU: 2}},
		{"a transaction, doubled and rounded item by item", []store.Op{
			store.Put(item("n", kb+1), store.Absent),
			store.Delete(key("a"), store.VersionIs(1)),
			store.Check(key("b"), store.VersionIs(1)),
		}, meter.Cost{WCU: 2 * (2 + 3 + 5)}},
		{"a canceled transaction costs the same", []store.Op{
			store.Put(item("n", kb+1), store.VersionIs(3)),
			store.Delete(key("a"), store.VersionIs(1)),
		}, meter.Cost{WCU: 2 * (2 + 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := filled(t, item("a", 3*kb), item("b", 5*kb))
			_ = m.Write(t.Context(), store.Write{Token: "u", Ops: c.ops})
			c.want.Calls = 1
			if diff := cmp.Diff(meter.Usage{Write: c.want}, m.Usage()); diff != "" {
				t.Errorf("Usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadPrices(t *testing.T) {
	t.Parallel()
	const kb = 1024
	whole := store.Range{Table: store.Work, Partition: "p"}
	eventual := whole
	eventual.Eventual = true
	for _, c := range []struct {
		name string
		read func(context.Context, *meter.Meter) error
		want meter.Usage
	}{
		{"get of an item of 4 KB", get("a"), meter.Usage{Get: meter.Cost{Calls: 1, RCU: 1}}},
		{"get of nothing", get("n"), meter.Usage{Get: meter.Cost{Calls: 1, RCU: 1}}},
		{"gets are rounded item by item, each key once", get("a", "b", "n", "b"), meter.Usage{Get: meter.Cost{Calls: 1, RCU: 1 + 2 + 1}}},
		{"get of no keys", get(), meter.Usage{Get: meter.Cost{Calls: 1}}},
		{"a query is rounded once", query(whole), meter.Usage{Query: meter.Cost{Calls: 1, RCU: 3}}},
		{"an eventual query costs half", query(eventual), meter.Usage{Query: meter.Cost{Calls: 1, RCU: 1.5}}},
		{"a query that finds nothing", query(store.Range{Table: store.Work, Partition: "n"}),
			meter.Usage{Query: meter.Cost{Calls: 1, RCU: 1}}},
		{"a query of a crossed range is not sent", query(store.Range{Table: store.Work, Partition: "p", From: "b", To: "a"}),
			meter.Usage{Query: meter.Cost{Calls: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := filled(t, item("a", 4*kb), item("b", 4*kb+1))
			if err := c.read(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, m.Usage()); diff != "" {
				t.Errorf("Usage (-want +got):\n%s", diff)
			}
		})
	}
}

func get(sorts ...string) func(context.Context, *meter.Meter) error {
	return func(ctx context.Context, m *meter.Meter) error {
		var keys []store.Key
		for _, sort := range sorts {
			keys = append(keys, key(sort))
		}
		_, err := m.Get(ctx, keys...)
		return err
	}
}

func query(r store.Range) func(context.Context, *meter.Meter) error {
	return func(ctx context.Context, m *meter.Meter) error {
		_, err := m.Query(ctx, r)
		return err
	}
}

func TestSequencerPrices(t *testing.T) {
	t.Parallel()
	m, ctx, now := filled(t), t.Context(), time.Now().UnixMicro()
	for _, step := range []func() error{
		func() error { _, err := m.Reserve(ctx, key("H"), 3, now); return err },
		func() error { _, err := m.Sequence(ctx, key("H"), false); return err },
		func() error { _, err := m.Sequence(ctx, key("H"), true); return err },
		func() error { return m.Raise(ctx, key("H"), 1, now) },
		func() error { return m.Raise(ctx, key("H"), 1, now) },
		func() error { _, err := m.Date(ctx); return err },
		func() error { return m.Ping(ctx) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	want := meter.Usage{
		Reserve:  meter.Cost{Calls: 1, WCU: 1},
		Sequence: meter.Cost{Calls: 2, RCU: 1.5},
		Raise:    meter.Cost{Calls: 2, WCU: 2},
		Date:     meter.Cost{Calls: 1, RCU: 0.5},
		Ping:     meter.Cost{Calls: 1, RCU: 1.5},
	}
	if diff := cmp.Diff(want, m.Usage()); diff != "" {
		t.Errorf("Usage (-want +got):\n%s", diff)
	}
	if got, want := m.Usage().Total().String(), "7 calls, 3 WCU, 3.5 RCU"; got != want {
		t.Errorf("Total = %s, want %s", got, want)
	}
}

func TestRemovePrices(t *testing.T) {
	t.Parallel()
	const kb = 1024
	m := filled(t, item("a", kb), item("b", 2*kb), item("c", 3*kb), item("d", 9*kb))
	if err := m.Remove(t.Context(), store.Range{Table: store.Work, Partition: "p", To: "d"}); err != nil {
		t.Fatal(err)
	}
	want := meter.Usage{Remove: meter.Cost{Calls: 1, WCU: 1 + 2 + 3, RCU: 2}}
	if diff := cmp.Diff(want, m.Usage()); diff != "" {
		t.Errorf("Usage (-want +got):\n%s", diff)
	}
}

// deaf is a store that refuses every Write and Reserve with one error, after taking that many requests for a ticket.
type deaf struct {
	store.Store
	err   error
	sends int
}

func (d deaf) Write(context.Context, store.Write) error { return d.err }

func (d deaf) Reserve(context.Context, store.Key, int, int64) (store.Ticket, error) {
	return store.Ticket{Sequence: store.Sequence{Position: 1, LastID: 1}, Sends: d.sends}, d.err
}

func TestWhatWasTurnedAwayIsFreeAndWhatIsUnknownIsNot(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		store.ErrBusy: 0, store.ErrTooLate: 0, store.ErrUnavailable: 0, context.Canceled: 0, store.ErrUnknown: 3,
	} {
		m := meter.New(deaf{Store: memory.New(memory.Options{}), err: err})
		if got := m.Write(t.Context(), write(store.Put(item("n", 3*1024), store.Absent))); !errors.Is(got, err) {
			t.Errorf("Write = %v, want %v", got, err)
		}
		if got := m.Reset().Write.WCU; got != want {
			t.Errorf("Write that ends with %v costs %d WCU, want %d", err, got, want)
		}
	}
}

func TestATicketIsPaidByItsSends(t *testing.T) {
	t.Parallel()
	m := meter.New(deaf{sends: 3})
	if _, err := m.Reserve(t.Context(), key("H"), 1, 1); err != nil {
		t.Fatal(err)
	}
	if got := m.Usage().Reserve; got != (meter.Cost{Calls: 1, WCU: 3}) {
		t.Errorf("Reserve costs %v, want 3 WCU", got)
	}
}
