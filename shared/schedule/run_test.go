package schedule_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/schedule"
)

// changing is definitions that change while they are used.
type changing struct {
	set atomic.Pointer[definition.Set]
}

func (c *changing) Current(context.Context) (*definition.Set, error) { return c.set.Load(), nil }

// Run notices what is declared or resumed while its next tick is far ahead, even if another goroutine of the process has
// looked at the schedules first.
func TestRunNoticesWhatIsNew(t *testing.T) {
	t.Parallel()
	yearly := definition.Schedule{Name: "yearly", Cron: "0 0 3 1 1 ?", Job: job}
	often := definition.Schedule{Name: "often", Cron: "* * * * * ?", Job: job}
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, yearly)
		b.now = time.Now()
		jobs := b.sets.set.Jobs
		var inForce changing
		inForce.set.Store(&definition.Set{Schedules: []definition.Schedule{yearly}, Jobs: jobs})
		s := schedule.Open(schedule.Options{Store: b.store, Journal: b.journal, Queue: b.queue, Definitions: &inForce})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		time.Sleep(time.Hour)
		synctest.Wait()

		inForce.set.Store(&definition.Set{Schedules: []definition.Schedule{yearly, often}, Jobs: jobs})
		if _, err := s.Soonest(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(b.created(job)); got == 0 {
			t.Error("a new schedule has no ticks after a second")
		}

		if err := s.Suspend(ctx, "often", true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := len(b.created(job))
		time.Sleep(time.Hour)
		if got := len(b.created(job)); before > 10 || got != before {
			t.Errorf("a schedule that is suspended has %d ticks, and later %d, want a few, and no more", before, got)
		}
		if err := s.Suspend(ctx, "often", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(b.created(job)); got <= before {
			t.Errorf("a schedule that was resumed has %d ticks after a second, %d before", got, before)
		}
		cancel()
		<-done
	})
}
