package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// online examines a running server.
func (k checkCommand) online(ctx context.Context, c console, r *report) error {
	server, err := k.dial(c)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := reach(ctx, server, r); err != nil {
		return err
	}
	before, err := server.Snapshot(ctx, "")
	if err := r.note("token", "may read", err); err != nil {
		return err
	}
	log, err := readJournal(ctx, server)
	if err := r.note("journal", log.String(), err); err != nil {
		return err
	}
	if !log.torn {
		before = client.Snapshot{} // the whole journal is there, so all of it can be folded
	}
	return r.note("snapshot", fmt.Sprintf("the state at %d and the events after it give the newest state", before.EventID),
		compare(ctx, server, before))
}

// maxSkew is how far a server's clock may be from this one's before it is called wrong.
const maxSkew = 10 * time.Second

// reach checks that the server responds, is ready, and has the right time.
func reach(ctx context.Context, server *client.Client, r *report) error {
	began := time.Now()
	_, date, err := server.Get(ctx, "/readyz")
	if err := r.note("server", fmt.Sprintf("ready, responds in %s", time.Since(began).Round(10*time.Microsecond)), err); err != nil {
		return err
	}
	skew := date.Sub(began).Round(time.Second)
	var wrong error
	if date.IsZero() || skew.Abs() > maxSkew {
		wrong = fmt.Errorf("the server's clock differs from this machine's by %s", skew)
	}
	return r.note("clock", "agrees with this machine's", wrong)
}

// journalSeen is what was found while a whole journal was read.
type journalSeen struct {
	torn        bool
	events      int
	first, last event.ID
}

// String returns it as a sentence for people.
func (j journalSeen) String() string {
	if j.events == 0 {
		return "empty"
	}
	text := fmt.Sprintf("%d events from %s to %s, ids rise", j.events, j.first.Time().Format(timeLayout), j.last.Time().Format(timeLayout))
	if j.torn {
		text += "; older ones were evicted"
	}
	return text
}

// readJournal reads every event that is there and checks that ids rise. Where the oldest were evicted, it begins at the
// oldest that are left.
func readJournal(ctx context.Context, server *client.Client) (journalSeen, error) {
	var seen journalSeen
	for q := (client.Query{}); ; {
		answer, err := server.Read(ctx, q)
		if err == nil {
			err = seen.add(answer.Events)
		}
		switch {
		case err != nil:
			return seen, err
		case answer.Torn && seen.torn:
			return seen, errors.New("events were evicted while they were read; check again")
		case answer.Torn:
			seen.torn = true
			q.After, err = retained(ctx, server)
			if err != nil {
				return seen, err
			}
		case len(answer.Events) == 0:
			return seen, nil
		default:
			q.After = answer.Last
		}
	}
}

// retained returns an EventId near the oldest events that are still there: a journal says that it is torn for every id
// below its floor, so the floor is found by bisection.
func retained(ctx context.Context, server *client.Client) (event.ID, error) {
	newest, err := server.Read(ctx, client.Query{Limit: -1})
	if err != nil {
		return 0, err
	}
	torn, kept := event.ID(0), newest.Last
	for kept-torn > 1 {
		middle := torn + (kept-torn)/2
		answer, err := server.Read(ctx, client.Query{After: middle, Limit: 1})
		if err != nil {
			return 0, err
		}
		if answer.Torn {
			torn = middle
		} else {
			kept = middle
		}
	}
	return kept, nil
}

func (j *journalSeen) add(events []event.Event) error {
	for i := range events {
		if id := events[i].ID; id <= j.last {
			return fmt.Errorf("event %d comes after %d", id, j.last)
		}
		j.last = events[i].ID
		if j.events++; j.events == 1 {
			j.first = j.last
		}
	}
	return nil
}

// compare takes a second snapshot and checks that the first one and the events between them give the same.
func compare(ctx context.Context, server *client.Client, before client.Snapshot) error {
	after, err := server.Snapshot(ctx, "")
	if err != nil {
		return err
	}
	state := client.StateOf(before)
	for q := (client.Query{After: before.EventID}); q.After < after.EventID; {
		answer, err := server.Read(ctx, q)
		if err != nil {
			return err
		}
		if answer.Torn {
			return errors.New("events were evicted while they were read; check again")
		}
		for _, e := range answer.Events {
			if e.ID > after.EventID {
				break
			}
			if err := state.Apply(e); err != nil {
				return err
			}
		}
		if answer.Last == q.After {
			break
		}
		q.After = answer.Last
	}
	return sameObjects(state.Objects(), after.Objects)
}

// sameObjects returns the first difference as an error, nil if there is none.
func sameObjects(folded, shown []client.Object) error {
	for i := range max(len(folded), len(shown)) {
		switch {
		case i >= len(folded):
			return fmt.Errorf("the snapshot has %s, and its events do not make it", shown[i].Key.Path)
		case i >= len(shown):
			return fmt.Errorf("the snapshot lacks %s, which its events make", folded[i].Key.Path)
		case !folded[i].Equal(shown[i]):
			return fmt.Errorf("the snapshot has %s %s, and its events make %s %s",
				shown[i].Key.Path, shown[i].Fields, folded[i].Key.Path, folded[i].Fields)
		}
	}
	return nil
}
