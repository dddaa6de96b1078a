package schedule

import (
	"context"
	"strings"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
)

// What a schedule does is brought about by what put it in force: its declaration, or its resumption. Its state remembers the id of
// that event. What ends the ticks that were made ahead is the suspension, or the declaration that is in force instead.

// declarations are the events of the newest change of the definitions, which are read once.
type declarations struct {
	journal  *journal.Journal
	revision int64

	mu   sync.Mutex
	read bool
	last event.ID // of them
	by   map[event.Key]event.ID
}

// of returns the event by which an object was declared or removed. If the newest change was not of this object, it is that change's
// last event: the set is in force as a whole. It is 0 if the change is no longer on the journal.
func (d *declarations) of(ctx context.Context, object event.Key) (event.ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.read && d.revision > 0 {
		events, err := d.journal.EventsAt(ctx, d.revision)
		if err != nil {
			return 0, err
		}
		d.by = make(map[event.Key]event.ID, len(events))
		for i := range events {
			d.last = events[i].ID
			d.by[events[i].Key] = d.last
		}
		d.read = true
	}
	if id, there := d.by[object]; there {
		return id, nil
	}
	return d.last, nil
}

// declarer returns the key of the object that declares a schedule of a job: itself, a source or a handler, see [All].
func declarer(schedule, job string) event.Key {
	if rest, is := strings.CutPrefix(schedule, "sources/"); is && job == "/"+schedule {
		source, _, _ := strings.Cut(rest, "/")
		return event.Key{Path: "Source:/" + source}
	}
	if rest, is := strings.CutPrefix(schedule, "canvases/"); is && job == "/"+schedule {
		return event.Key{Path: "Handler:/" + rest}
	}
	return typed.ScheduleKey(schedule)
}
