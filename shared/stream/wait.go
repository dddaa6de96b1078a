package stream

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
)

// wait reads again whenever the journal has an append that the reading asks for, until there is something or time is up. The
// journal notifies waiting readers of appends in their own process, and polls for those of others.
func (s *Streams) wait(ctx context.Context, n number, r Reading) ([]Stored, error) {
	deadline := time.Now().Add(r.Timeout)
	match := func(e *event.Event) bool {
		return e.Type == event.StreamAppended && e.Key.Path == r.Stream && (r.Name == "" || r.Name == typed.ReadStreamAppended(e).Name)
	}
	for {
		newest, err := s.journal.ReadNewest(ctx, journal.Request{Limit: 1})
		if err != nil {
			return nil, err
		}
		// What was appended before newest is found here, what is appended later by the journal.
		found, err := s.unacknowledged(ctx, n, r)
		if err != nil || len(found) > 0 {
			return found, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, nil
		}
		answer, err := s.journal.ReadAfter(ctx, journal.Request{After: newest.LastEventID, Match: match, Limit: 1, Timeout: left})
		if err != nil {
			return nil, err
		}
		if len(answer.Events) == 0 && !answer.Torn {
			continue // time is up, or nearly
		}
		found, err = s.unacknowledged(ctx, n, r)
		if err != nil || len(found) > 0 {
			return found, err
		}
		if err := pause(ctx, visible); err != nil { // it is stored, and about to become visible
			return nil, err
		}
	}
}
