package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/event"
)

type checkCommand struct {
	remote
	format
	Data  string `help:"Examine the data directory of a stopped server instead." placeholder:"DIR" xor:"where"`
	Store string `help:"Examine a store instead: pebble:DIR or dynamodb:PREFIX." placeholder:"URL" xor:"where"`

	Restored bool `help:"The store comes from a backup: give the journal a new identity, so that followers take new snapshots."`
}

func (checkCommand) Help() string {
	return `Examples:

    millrace check                              the server that MILLRACE_URL names
    millrace check --data /var/lib/millrace     the data of a stopped server
    millrace check --data DIR --restored        the same, before a server starts on a restored backup

A server is asked whether it is ready and lets this token in, and what time it has; its whole journal is read, and a snapshot with
the events after it is compared with a later snapshot. Offline, every slot of the journal is read and verified.`
}

// Run examines and prints a line for each finding. It fails if any of them is bad.
func (k checkCommand) Run(ctx context.Context, c console) error {
	if k.Restored && k.Data == "" && k.Store == "" {
		return usageError{errors.New("--restored needs --data or --store: no server may be using what was restored")}
	}
	r := &report{}
	var err error
	if k.Data != "" || k.Store != "" {
		err = k.offline(ctx, r)
	} else {
		err = k.online(ctx, c, r)
	}
	if len(r.findings) == 0 {
		return err
	}
	if err != nil {
		err = failedCheck{err}
	}
	return errors.Join(r.print(c.out, k.format), err)
}

// failedCheck is an error that the report has told already.
type failedCheck struct{ error }

func (failedCheck) Error() string   { return "the check failed" }
func (f failedCheck) Unwrap() error { return f.error }

// offline verifies a store that no server is using.
func (k checkCommand) offline(ctx context.Context, r *report) error {
	url := k.Store
	if k.Data != "" {
		url = "pebble:" + k.Data
	}
	if _, err := os.Stat(k.Data); k.Data != "" && err != nil {
		return usageError{err} // which opening would create
	}
	n, err := openNode(ctx, config.Settings{Store: url}, silent())
	if err != nil {
		return r.note("store", "", err)
	}
	v, err := n.journal.Verify(ctx)
	found := fmt.Sprintf("%d events in %d slots, %d of them void, above the floor at %d; ids rise from %d to %d",
		v.Events, v.Slots, v.Voids, v.Floor, v.FirstID, v.LastID)
	err = r.note("journal", found, err)
	if err == nil && k.Restored {
		var begins event.ID
		begins, err = n.journal.Restored(ctx)
		err = r.note("restored", fmt.Sprintf("the journal begins anew at %d; every earlier EventId is torn", begins), err)
	}
	return errors.Join(err, n.close())
}

// online asks a server.
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

// reach checks that the server answers, is ready, and has the right time.
func reach(ctx context.Context, server *client.Client, r *report) error {
	began := time.Now()
	_, date, err := server.Get(ctx, "/readyz")
	if err := r.note("server", fmt.Sprintf("ready, answers in %s", time.Since(began).Round(10*time.Microsecond)), err); err != nil {
		return err
	}
	skew := date.Sub(began).Round(time.Second)
	var wrong error
	if date.IsZero() || skew.Abs() > maxSkew {
		wrong = fmt.Errorf("the server's clock differs from this machine's by %s", skew)
	}
	return r.note("clock", "agrees with this machine's", wrong)
}

// journalSeen is what reading a whole journal found.
type journalSeen struct {
	torn        bool
	events      int
	first, last event.ID
}

// String says it for people.
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

// readJournal reads every event that is there and checks that ids rise. Where the oldest were evicted, a snapshot is
// where to begin.
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

// retained answers an EventId near the oldest events that are still there: a journal says that it is torn for every id
// below its floor, so the floor is found by halving.
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

// sameObjects answers the first difference.
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

// report collects findings.
type report struct {
	findings []finding
}

type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// note adds a finding and answers its error.
func (r *report) note(check, detail string, err error) error {
	if err != nil {
		detail = err.Error()
	}
	r.findings = append(r.findings, finding{check, err == nil, detail})
	return err
}

func (r *report) print(w io.Writer, f format) error {
	switch f.Output {
	case "json":
		return printJSON(w, r.findings)
	case "jsonl":
		return printLines(w, r.findings)
	}
	return table(w, "CHECK\tRESULT\tDETAIL", func(row func(...any)) {
		for _, found := range r.findings {
			row(found.Check, map[bool]string{true: "ok", false: "FAILED"}[found.OK], found.Detail)
		}
	})
}
