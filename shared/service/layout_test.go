package service_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/upgrade"
)

// A process that meets a store of a newer layout ends at once, and one whose store is away for a moment waits for it.
func TestAStartDemandsItsLayout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		if err := service.DemandLayout(t.Context(), &failing{Store: s, at: 1, err: store.ErrUnavailable}, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("DemandLayout = %v", err)
		}
		newer := store.Item{Key: store.Key{Table: store.Journal, Partition: "layout", Sort: "0"}, Version: 2, Value: []byte(`{"layout":99}`)}
		if err := s.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Put(newer, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := service.DemandLayout(t.Context(), s, slog.New(slog.DiscardHandler)); !errors.Is(err, upgrade.ErrNewer) || time.Since(began) > 0 {
			t.Errorf("DemandLayout = %v after %v, want %v at once", err, time.Since(began), upgrade.ErrNewer)
		}
	})
}
