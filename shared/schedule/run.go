package schedule

import (
	"context"
	"errors"
	"time"
)

// Ahead is how long before its time a tick's task is made.
const Ahead = 75 * time.Second

// pause is how often Run looks at the definitions.
const pause = 2 * time.Second

// Run makes ticks, each some time before it falls due, until ctx ends. It is for a process that is always there; elsewhere
// the function cron calls Make each minute.
func (s *Scheduler) Run(ctx context.Context) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var next time.Time
	for {
		if now := s.o.Now(); next.IsZero() || !now.Before(next) || s.changed(ctx) {
			made, err := s.Make(ctx, now.Add(Ahead))
			if err != nil && !errors.Is(err, context.Canceled) {
				s.o.Log.Warn("not every schedule could be looked after; it is tried again", "error", err)
			}
			next = now.Add(Ahead / 3)
			if err == nil && !made.Next.IsZero() && made.Next.Add(-Ahead/2).After(next) {
				next = made.Next.Add(-Ahead / 2)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// changed reports whether another set is in force than the one that was compiled.
func (s *Scheduler) changed(ctx context.Context) bool {
	set, err := s.o.Definitions.Current(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && set != s.of
}
