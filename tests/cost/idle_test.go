package cost_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

// TestAnIdleMinuteCosts33RCU: what the functions sweep and cron read each minute where nothing happens, and that they write nothing.
func TestAnIdleMinuteCosts33RCU(t *testing.T) {
	t.Parallel()
	m := meter.New(together{memory.New(memory.Options{})})
	notifier, err := local.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := service.NewTasks(service.New(host.Place{Env: func(string) string { return "" }}, config.Settings{}, m, slog.New(slog.DiscardHandler)), notifier)
	t.Cleanup(func() { _ = s.Close() })
	var usage meter.Usage
	for range 3 { // at first there is more to read
		m.Reset()
		_, tasks := s.Queue.Sweep(t.Context())
		_, ticks := s.Schedules.Make(t.Context(), time.Now().Add(150*time.Second))
		_, due := s.Queue.NotifyDue(t.Context(), time.Now().Add(150*time.Second))
		for _, err := range []error{tasks, s.Orders.Sweep(t.Context()), s.Orders.Match(t.Context()), s.SweepJournal(t.Context()), s.Declare(t.Context()), ticks, due} {
			if err != nil {
				t.Fatal(err)
			}
		}
		usage = m.Reset()
	}
	if total := usage.Total(); total.RCU > 33 || total.RCU <= 32 || total.WCU != 0 {
		t.Errorf("an idle minute costs %+v", total)
	}
}
