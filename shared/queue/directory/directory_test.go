package directory_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue/directory"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// A line is forgotten when it is empty and was not registered for long, and its registration is made anew by whoever adds to it next.
func TestAnEmptyLineIsForgottenAfterAWhile(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		now, count := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
		s := memory.New(memory.Options{Date: func() time.Time { return now }})
		d := directory.New(directory.Options{
			Store: s, Now: func() time.Time { return now }, Created: func() int64 { return now.UnixMicro() },
			Quiet: 30 * time.Minute, Alone: alone, Log: slog.New(slog.DiscardHandler),
			Apply: func(ctx context.Context, ops ...store.Op) error {
				count++
				return s.Write(ctx, store.Write{Token: fmt.Sprint("t", count), Ops: ops})
			},
		})
		l := layout.Line{Queue: "main", Job: "/job"}
		knows := func() bool {
			lines, err := d.Lines(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return slices.Contains(lines, l)
		}
		for range 2 {
			if err := d.Register(t.Context(), l); err != nil || !knows() {
				t.Fatalf("alone %t: a line that was registered is not known: %v", alone, err)
			}
			if forgotten, err := d.Forget(t.Context()); err != nil || forgotten != 0 {
				t.Errorf("alone %t: %d lines were forgotten at once: %v", alone, forgotten, err)
			}
			now = now.Add(31 * time.Minute)
			if forgotten, err := d.Forget(t.Context()); err != nil || forgotten != 1 || knows() {
				t.Errorf("alone %t: %d lines were forgotten after a while: %v", alone, forgotten, err)
			}
		}
	}
}
