package schedule_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/schedule"
)

// A process whose clock is off makes no tick, gives up none, and does not change the states, so that processes whose clocks are
// right make each tick at its time.
func TestAProcessWhoseClockIsOffMakesNoTicks(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{15 * time.Minute, 30 * time.Second, -30 * time.Second, -15 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, every("s", "0 * * * * ?", func(s *definition.Schedule) { s.Misfire = schedule.MisfireSkip }))
				b.store = shared{b.store}
				open := func(ahead time.Duration) *schedule.Scheduler {
					return schedule.Open(schedule.Options{
						Store: b.store, Journal: b.journal, Queue: b.queue, Definitions: b.sets,
						Clock: clock.Open(b.store, clock.Options{Now: func() time.Time { return time.Now().Add(ahead) }}),
					})
				}
				right, off := open(0), open(ahead)
				var want []string
				for minute := range 30 {
					b.now = time.Now()
					_, err := off.Make(t.Context(), b.now.Add(ahead+150*time.Second))
					if _, skewed := errors.AsType[*clock.Skew](err); !skewed || !errors.Is(err, journal.ErrUnavailable) {
						t.Errorf("Make of the process that is off = %v, want a refusal for its clock", err)
					}
					if _, err := right.Make(t.Context(), b.now.Add(150*time.Second)); err != nil {
						t.Fatal(err)
					}
					want = append(want, fmt.Sprintf("01 00:%02d:00", minute+1))
					time.Sleep(time.Minute)
				}
				want = append(want, "01 00:31:00")
				if diff := cmp.Diff(want, b.created(job)); diff != "" {
					t.Errorf("ticks (-want +got):\n%s", diff)
				}
				if err := off.Suspend(t.Context(), "s", false); err == nil {
					t.Error("a process that is off let the schedule go on from its time")
				}
				if err := b.journal.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
