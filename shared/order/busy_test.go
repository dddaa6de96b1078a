package order_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// sometimesBusy refuses every second read.
type sometimesBusy struct {
	store.Store
	reads int
}

func (s *sometimesBusy) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if s.reads++; s.reads%2 == 1 {
		return nil, store.ErrBusy
	}
	return s.Store.Get(ctx, keys...)
}

// No call fails because the store throttles.
func TestReadsAreRepeatedWhileTheStoreIsBusy(t *testing.T) {
	t.Parallel()
	busy := &sometimesBusy{Store: memory.New(memory.Options{})}
	b := open(t, shared{busy}, chains(ab()))
	b.add(nil)
	busy.reads = 0
	if _, err := b.Get(t.Context(), "/c", "1"); err != nil {
		t.Errorf("Get: %v", err)
	}
	busy.reads = 0
	if err := b.Act(t.Context(), "/c", "1", order.Act{Kind: order.Suspend}); err != nil {
		t.Errorf("Act: %v", err)
	}
	busy.reads = 0
	if err := b.Sweep(t.Context()); err != nil {
		t.Errorf("Sweep: %v", err)
	}
}
