package journal_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// delayed is a store whose next write of a slot takes a while to get there.
type delayed struct {
	store.Store
	by      time.Duration
	setting chan struct{} // closed when the write sets out
}

// Write writes, late if it is of a slot.
func (d *delayed) Write(ctx context.Context, w store.Write) error {
	if by := d.by; by > 0 && strings.HasPrefix(w.Ops[0].Item.Key.Partition, "J#") {
		d.by = 0
		close(d.setting)
		time.Sleep(by)
		ctx = context.WithoutCancel(ctx)
	}
	return d.Store.Write(ctx, w)
}

// While a write of a slot is on its way, others take the slot for empty, go on behind it, evict it and sweep. The write must find that the
// slot was filled, or its events would be acknowledged and told to nobody.
func TestASlotThatWasEvictedRefusesALateWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{Shared: true})
		slow := &delayed{Store: m, by: 1500 * time.Millisecond, setting: make(chan struct{})}
		o := journal.Options{Retention: journal.Retention{Events: 1}}
		late, others := open(t, slow, o), open(t, m, o)
		var got journal.Receipt
		ended := make(chan error)
		go func() {
			var err error
			got, err = late.Emit(t.Context(), []event.Event{custom(0)}, nil)
			ended <- err
		}()
		<-slow.setting
		for n := range 3 {
			if _, err := others.Emit(t.Context(), []event.Event{custom(n)}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := others.ReadAfter(t.Context(), journal.Request{Timeout: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := others.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		a, err := others.ReadAfter(t.Context(), journal.Request{After: got.FirstID - 1})
		if err != nil || a.Torn || len(a.Events) == 0 || a.Events[0].ID != got.FirstID {
			t.Errorf("what was acknowledged as %d: %+v, %v", got.FirstID, a, err)
		}
	})
}
