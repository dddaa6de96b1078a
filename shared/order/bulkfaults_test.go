package order_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
)

// watched is a store that calls after each query.
type watched struct {
	store.Store
	after func(r store.Range)
}

func (w *watched) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := w.Store.Query(ctx, r)
	if w.after != nil {
		w.after(r)
	}
	return page, err
}

// A process that stands still after it has read what a batch has left to do skips no order again, however far another one has come since.
func TestAProcessStandsStillInABatch(t *testing.T) {
	for name, after := range map[string]time.Duration{"for a moment": 0, "longer than it keeps the act": time.Hour} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
				const n = 70 // two batches
				b.addMany(n)
				b.events()
				id := b.all(order.Act{Kind: order.Skip}, everything).ID
				w := &watched{Store: b.store}
				still, other := open(t, w, b.declared.set), open(t, b.store, b.declared.set)
				still.now, other.now = b.now, b.now.Add(after)
				w.after = func(r store.Range) {
					if strings.HasPrefix(r.From, "m0") {
						w.after = nil
						other.sweep()
					}
				}
				still.sweep()
				b.now = other.now.Add(time.Minute)
				b.sweep()
				b.told(id, order.Bulk{Kind: "skip", By: "ada", Count: n, Done: n, State: order.BulkDone})
				if got := b.types(); got["OrderNodeChanged"] != n {
					t.Errorf("events %v, want %d changes of nodes", got, n)
				}
			})
		})
	}
}

// An order that cannot be acted on does not keep the act from its end; it counts as failed, after some tries where it may be for now.
func TestAnActOnAnOrderThatCannotBeActedOn(t *testing.T) {
	v := ab()
	v.Path = "/v"
	onBoth(t, chains(ab(), v), func(t *testing.T, b *bench) {
		b.addMany(3)
		b.on("/v", "1")
		damaged := b.all(order.Act{Kind: order.Suspend}, everything).ID
		b.damage("order//c,1", "-")
		_ = b.Sweep(t.Context())
		b.told(damaged, order.Bulk{Kind: "suspend", By: "ada", Count: 4, Done: 3, Failed: 1, State: order.BulkDone})

		lost := b.all(order.Act{Kind: order.Resume}, everything).ID
		version := store.Key{Table: store.Work, Partition: "versions//v", Sort: "0000000001"}
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Delete(version, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		other := open(t, b.store, b.declared.set) // which has not read the version
		other.now = b.now
		for range 3 {
			_ = other.Sweep(t.Context())
			other.now = other.now.Add(10 * time.Minute)
		}
		b.told(lost, order.Bulk{Kind: "resume", By: "ada", Count: 4, Done: 2, State: order.BulkRunning})
		for range 10 {
			_ = other.Sweep(t.Context())
			other.now = other.now.Add(10 * time.Minute)
		}
		b.told(lost, order.Bulk{Kind: "resume", By: "ada", Count: 4, Done: 2, Failed: 2, State: order.BulkDone})
	})
}

// A stopped act can be resumed for a week, and is gone then, as a done one is.
func TestAStoppedActIsForgotten(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		const week = 7 * 24 * time.Hour
		b.addMany(2)
		stopped, resumed := b.all(order.Act{Kind: order.Suspend}, everything).ID, b.all(order.Act{Kind: order.Suspend}, everything).ID
		for _, id := range []string{stopped, resumed} {
			if err := b.StopBulk(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		b.now = b.now.Add(week - time.Second)
		b.sweep()
		if err := b.ResumeBulk(t.Context(), resumed); err != nil {
			t.Fatal(err)
		}
		b.sweep()
		b.told(stopped, order.Bulk{Kind: "suspend", By: "ada", Count: 2, State: order.BulkStopped})
		b.now = b.now.Add(2 * time.Second)
		b.sweep()
		if _, err := b.Bulk(t.Context(), stopped); !errors.Is(err, order.ErrNoBulk) {
			t.Errorf("Bulk = %v, want ErrNoBulk", err)
		}
		b.told(resumed, order.Bulk{Kind: "suspend", By: "ada", Count: 2, Done: 2, State: order.BulkDone})
		b.now = b.now.Add(week)
		b.sweep()
		for _, id := range []string{stopped, resumed} {
			page, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: "act/" + id})
			if err != nil || len(page.Items) > 0 {
				t.Errorf("%d items of an act are left, %v", len(page.Items), err)
			}
		}
	})
}

// An act begins once for each idempotency key; one that selects nothing keeps no key.
func TestAnActBeginsOnce(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		key := func(content string) *journal.Idempotency {
			return &journal.Idempotency{Scope: "s", Key: "k", Fingerprint: sha256.Sum256([]byte(content))}
		}
		skip := order.Act{Kind: order.Skip}
		if _, err := b.ActOnAll(t.Context(), key("a"), skip, everything); !errors.Is(err, order.ErrNothing) {
			t.Errorf("ActOnAll = %v, want ErrNothing", err)
		}
		b.addMany(2)
		b.events()
		first, err := b.ActOnAll(t.Context(), key("b"), skip, everything)
		if err != nil || first.Replayed {
			t.Fatal(first, err)
		}
		b.on("/c", "later")
		again, err := b.ActOnAll(t.Context(), key("b"), skip, everything)
		if first.Replayed = true; err != nil || again != first {
			t.Errorf("again: %+v, %v, want %+v", again, err, first)
		}
		if _, err := b.ActOnAll(t.Context(), key("c"), skip, everything); !errors.Is(err, journal.ErrIdempotencyMismatch) {
			t.Errorf("with another content: %v, want ErrIdempotencyMismatch", err)
		}
		b.sweep()
		b.told(first.ID, order.Bulk{Kind: "skip", Count: 2, Done: 2, State: order.BulkDone})
		b.now = b.now.Add(25 * time.Hour)
		b.sweep()
		if third, err := b.ActOnAll(t.Context(), key("d"), skip, everything); err != nil || third.ID == first.ID || third.Count != 3 {
			t.Errorf("a day later: %+v, %v", third, err)
		}
	})
}

// Of two acts with one key that begin at the same time, one is done.
func TestTwoActsWithOneKey(t *testing.T) {
	onBoth(t, chains(ab()), func(t *testing.T, b *bench) {
		b.addMany(2)
		once := &journal.Idempotency{Scope: "s", Key: "k"}
		act := order.Act{Kind: order.Suspend}
		var inner order.Bulk
		other := open(t, b.store, b.declared.set)
		other.now = b.now
		w := &beforeBegin{Store: b.store}
		slow := open(t, w, b.declared.set)
		slow.now = b.now
		w.before = func() {
			var err error
			if inner, err = other.ActOnAll(t.Context(), once, act, everything); err != nil {
				t.Error(err)
			}
		}
		outer, err := slow.ActOnAll(t.Context(), once, act, everything)
		if err != nil || outer.ID != inner.ID || !outer.Replayed {
			t.Errorf("%+v, %v, want %+v", outer, err, inner)
		}
		b.sweep()
		b.told(inner.ID, order.Bulk{Kind: "suspend", Count: 2, Done: 2, State: order.BulkDone})
		b.now = b.now.Add(8 * 24 * time.Hour)
		b.sweep()
		b.nothingLeft()
	})
}

// beforeBegin is a store that calls before the first write of a note of an idempotency key.
type beforeBegin struct {
	store.Store
	before func()
}

func (s *beforeBegin) Write(ctx context.Context, w store.Write) error {
	for i := range w.Ops {
		if strings.HasPrefix(w.Ops[i].Item.Key.Partition, "order-once/") && s.before != nil {
			before := s.before
			s.before = nil
			before()
		}
	}
	return s.Store.Write(ctx, w)
}
