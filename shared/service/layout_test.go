package service_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
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
		if err := demandLayout(t, &failing{Store: s, at: 1, err: store.ErrUnavailable}); err != nil {
			t.Errorf("DemandLayout = %v", err)
		}
		newer := store.Item{Key: store.Key{Table: store.Journal, Partition: "layout", Sort: "0"}, Version: 2, Value: []byte(`{"layout":99}`)}
		if err := s.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Put(newer, store.Always)}}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := demandLayout(t, s); !errors.Is(err, upgrade.ErrNewer) || time.Since(began) > 0 {
			t.Errorf("DemandLayout = %v after %v, want %v at once", err, time.Since(began), upgrade.ErrNewer)
		}
	})
}

func demandLayout(t *testing.T, s store.Store) error {
	t.Helper()
	return service.New(host.Place{}, config.Settings{}, s, slog.New(slog.DiscardHandler)).DemandLayout(t.Context())
}

// Slots share partitions in short runs in a store that begins, and in long ones in one that an older release began.
func TestSlotsLieWhereTheStoreSays(t *testing.T) {
	t.Parallel()
	for value, run := range map[string]int64{
		"":                             journal.ShortRun,
		`{"layout":2,"since":"0.2.0"}`: journal.LongRun,
		`{"layout":3,"since":"0.3.0"}`: journal.LongRun,
	} {
		base := memory.New(memory.Options{})
		if value != "" {
			item := store.Item{Key: store.Key{Table: store.Journal, Partition: "layout", Sort: "0"}, Version: 2, Value: []byte(value)}
			if err := base.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Put(item, store.Absent)}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second start finds what the first has noted
			s := service.New(host.Place{}, config.Settings{}, apart{base}, slog.New(slog.DiscardHandler))
			if err := s.DemandLayout(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 * journal.LongRun {
				r, err := s.Journal.Emit(t.Context(), []event.Event{{Type: "Tick"}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				at := store.Key{
					Table: store.Journal, Partition: fmt.Sprintf("J#main#%013d#%02d", 0, r.Position/run%16), Sort: fmt.Sprintf("%016d", r.Position),
				}
				if found, err := base.Get(t.Context(), at); err != nil || found[0] == nil {
					t.Fatalf("%s: no slot at %v: %v", value, at, err)
				}
			}
		}
	}
}

// apart is a store that other processes use too.
type apart struct{ store.Store }

func (apart) Exclusive() bool { return false }
