package journal

import (
	"context"

	"github.com/millrace/millrace/shared/event"
)

// Announce has hear called with the events of each write of this process that has landed, before Write or Emit returns; hear must keep
// none of them, and write nothing itself. An event is announced once at most: not at all if its write's outcome was unknown.
// Announce is to be called before any other method.
func (j *Journal) Announce(hear func(ctx context.Context, events []event.Event)) { j.hear = hear }

func (j *Journal) announce(ctx context.Context, events []event.Event) {
	if j.hear != nil && len(events) > 0 {
		j.hear(ctx, events)
	}
}
