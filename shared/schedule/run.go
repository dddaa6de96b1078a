package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/definition"
)

// Ahead is how long before its time a tick's task is made where processes share the store.
const Ahead = 75 * time.Second

// aheadAlone is the same in a process that has the store to itself, where looking costs nothing. It is short so that few tasks
// have to be withdrawn.
const aheadAlone = 3 * time.Second

// pause is how often Run checks whether there is anything new. It bounds how late the first ticks of a new schedule are.
const pause = 500 * time.Millisecond

func (s *Scheduler) ahead() time.Duration {
	if s.o.Store.Exclusive() {
		return aheadAlone
	}
	return Ahead
}

// Run makes ticks, each some time before it falls due, until ctx ends. It is for a process that runs all the time; elsewhere
// the function cron calls Make each minute.
func (s *Scheduler) Run(ctx context.Context) {
	ahead := s.ahead()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var next time.Time
	var looked *definition.Set // the set in force at the last look
	sound := false             // the last look succeeded
	for {
		set, err := s.o.Definitions.Current(ctx)
		changed := err == nil && set != looked
		if now := s.o.Now(); !now.Before(next) || changed || s.resumed.Swap(false) {
			looked = set
			made, err := s.Make(ctx, now.Add(ahead))
			sound = err == nil
			if err != nil && !errors.Is(err, context.Canceled) {
				s.o.Log.Warn("not every schedule could be looked after; it is tried again", "error", err)
			}
			next = now.Add(ahead / 3)
			if err == nil && !made.Next.IsZero() && made.Next.Add(-ahead/2).After(next) {
				next = made.Next.Add(-ahead / 2)
			}
		} else if sound && err == nil {
			s.presence.note(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
