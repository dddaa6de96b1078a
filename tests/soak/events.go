package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/witness"
)

// emitted is what clients emitted.
type emitted struct {
	witness witness.Witness
	number  atomic.Int64

	mu      sync.Mutex
	recent  []append1       // some that are emitted once more
	doubted map[string]bool // fields of events of which it is not known whether they were appended
}

// append1 is an append that was acknowledged.
type append1 struct {
	key    string
	events []event.Event
	ids    []event.ID
}

var appends = emitted{doubted: map[string]bool{}}

// emit appends some events, or repeats an append that was acknowledged before.
func (k *clients) emit(ctx context.Context) {
	if old, ok := appends.old(); ok && chance(0.1) {
		ids, replayed, err := k.c.EmitOnce(ctx, old.key, old.events)
		if !k.failed(err, "emit again") && (!replayed || !slices.Equal(ids, old.ids)) {
			k.ledger.wrong("an append that was repeated under its key was answered %v, replayed %t, want %v", ids, replayed, old.ids)
		}
		return
	}
	events := make([]event.Event, 1+rand.N(4))
	for i := range events {
		n := appends.number.Add(1)
		events[i] = event.Event{
			Type: fmt.Sprint("Made", n%3), Key: event.Key{Path: fmt.Sprintf("/soak/%d/%d", n%7, n%300)}, Fields: fmt.Appendf(nil, `"n":%d`, n),
		}
	}
	k.failed(k.emitOnce(ctx, fmt.Sprint("soak-", appends.number.Add(1)), events), "emit")
}

// emitOnce appends and remembers.
func (k *clients) emitOnce(ctx context.Context, key string, events []event.Event) error {
	ids, _, err := k.c.EmitOnce(ctx, key, events)
	if err != nil {
		appends.doubt(events)
		return err
	}
	appends.witness.Acknowledged(events, ids)
	appends.keep(append1{key, events, ids})
	return nil
}

func (e *emitted) doubt(events []event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range events {
		e.doubted[string(one.Fields)] = true
	}
}

func (e *emitted) isDoubted(one event.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.doubted[string(one.Fields)]
}

// keep remembers some appends.
func (e *emitted) keep(a append1) {
	const most = 500
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.recent) < most {
		e.recent = append(e.recent, a)
		return
	}
	e.recent[rand.N(most)] = a
}

func (e *emitted) old() (a append1, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.recent) == 0 {
		return a, false
	}
	return e.recent[rand.N(len(e.recent))], true
}

// follower reads custom events from where it began while the journal grows.
type follower struct {
	name  string
	query client.Query
	match func(*event.Event) bool

	mu    sync.Mutex
	state *client.State // of one that began with a snapshot
	saw   []event.Event
	last  event.ID
	torn  bool
	err   error
}

// custom are the types of events that are emitted here.
var custom = []string{"Made", "Made0", "Made1", "Made2"}

// objects are those that the events are about.
const objects = "/soak/"

func followers() []*follower {
	all := func(*event.Event) bool { return true }
	below := func(e *event.Event) bool { return len(e.Key.Path) > 8 && e.Key.Path[:8] == "/soak/1/" }
	return []*follower{
		{name: "everything", query: client.Query{Types: custom}, match: all},
		{name: "everything by sevens", query: client.Query{Types: custom, Limit: 7}, match: all},
		{name: "Made1", query: client.Query{Types: []string{"Made1"}}, match: func(e *event.Event) bool { return e.Type == "Made1" }},
		{name: "below /soak/1/", query: client.Query{Path: "/soak/1/"}, match: below},
	}
}

// follow reads until ctx ends.
func (f *follower) follow(ctx context.Context, c *client.Client) {
	f.query.Wait = 5 * time.Second
	for step, err := range c.Follow(ctx, f.query) {
		f.mu.Lock()
		f.last = max(f.last, step.Last)
		switch {
		case err != nil && ctx.Err() == nil:
			f.err = err
		case step.Snapshot != nil:
			f.torn = true
		}
		if f.state == nil {
			f.saw = append(f.saw, step.Events...)
		}
		for i := range step.Events {
			if f.state != nil && f.err == nil {
				f.err = f.state.Apply(step.Events[i])
			}
		}
		f.mu.Unlock()
	}
}

// late returns a follower that begins with a snapshot of now.
func late(ctx context.Context, c *client.Client) (*follower, error) {
	snapshot, err := c.Snapshot(ctx, objects)
	if err != nil {
		return nil, err
	}
	return &follower{
		name: "a snapshot's followings", query: client.Query{After: snapshot.EventID, Path: objects}, state: client.StateOf(snapshot),
	}, nil
}

// at returns the last id that the follower has seen.
func (f *follower) at() (event.ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.err
}

// judge returns what is wrong with what the follower saw; "": nothing.
func (f *follower) judge(final client.Snapshot) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != nil {
		if !slices.EqualFunc(f.state.Objects(), final.Objects, client.Object.Equal) {
			return "its state is not that of a snapshot at the end"
		}
		return ""
	}
	if f.torn {
		return "it was torn"
	}
	saw := slices.DeleteFunc(slices.Clone(f.saw), appends.isDoubted)
	if v := witness.Judge(appends.witness.Journal(f.match), saw); !v.OK() {
		return v.String()
	}
	return ""
}

// lastID returns the highest id that was acknowledged.
func (e *emitted) lastID() event.ID {
	journal := e.witness.Journal(nil)
	if len(journal) == 0 {
		return 0
	}
	return journal[len(journal)-1].ID
}
