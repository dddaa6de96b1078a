package bench

import (
	"context"
	"log/slog"
	"testing"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
)

// Reading many events takes no more memory than reading few. Tests at the same time would be measured too, so that this one
// is not parallel.
func TestReadingTakesNoMoreMemoryTheLongerItLasts(t *testing.T) {
	const events, rounds = 300_000, 3 // some 80 MB a round
	const slack = 64 << 20            // what the store's caches may still fill up by after the first round
	p := Program{Open: open}
	err := Journal{Scratch: Scratch{Dir: t.TempDir()}, Sides: Sides{InProcess: true}}.on(t.Context(), p, func(s subject, _ string) error {
		if err := fill(t.Context(), s, events, 256); err != nil {
			return err
		}
		first := mostHeap(t, s, events)
		for range rounds {
			if later := mostHeap(t, s, events); later > first+slack {
				t.Errorf("live heap = %v, in the first round %v", later, first)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a program in this process, as the command does.
func open(ctx context.Context, settings config.Settings) (*Node, error) {
	s, err := config.OpenStore(ctx, settings.Store, config.Openers{
		"pebble": func(_ context.Context, dir string) (store.Store, error) { return pebble.Open(dir, pebble.Options{}) },
	})
	if err != nil {
		return nil, err
	}
	place := host.Place{Env: func(string) string { return "" }}
	return &Node{Tasks: service.NewTasks(service.New(place, settings, s, slog.New(slog.DiscardHandler)), local.New())}, nil
}

// mostHeap reads the whole journal and returns the most memory that was in use meanwhile.
func mostHeap(t *testing.T, s subject, events int) size {
	t.Helper()
	read, _, heap, err := readAll(t.Context(), s, events)
	if err != nil || read != events {
		t.Fatalf("read %d events of %d: %v", read, events, err)
	}
	return max(heap[0], heap[1])
}
