package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// life is what is known of a task.
type life struct {
	acked   bool
	want    string // the state in which it must end; "": any
	line    int8
	added   uint8  // how often the journal says so
	closed  uint8  // the same
	running bool   // started, and not yet ended
	state   string // the last that the journal told
	highest int    // number of an attempt
	starts  int
	readyAt int64         // of the next start, in microseconds
	started int64         // the last time
	by      string        // who started it last
	ran     uint64        // attempts that were seen to be run, by bits
	twice   int           // attempts that were seen to be run more than once
	trail   []event.Event // what the journal said of it
}

// uuid is the end of a task's id, which alone is unique.
type uuid [16]byte

func uuidOf(id string) (u uuid, ok bool) {
	if len(id) < 36 {
		return u, false
	}
	n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(id[len(id)-36:], "-", "")))
	return u, err == nil && n == len(u)
}

// String returns it as it stands in ids.
func (u uuid) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// created returns the time that the id was made for, to the millisecond: of a tick, its own.
func (u uuid) created() time.Time {
	milli := int64(0)
	for _, b := range u[:6] {
		milli = milli<<8 | int64(b)
	}
	return time.UnixMilli(milli)
}

// stretch is how long something of a task took: from when to when, in microseconds.
type stretch struct {
	line     int8
	from, to int64
	task     uuid
}

// ledger holds what clients were told about tasks, and what the journal says about them.
type ledger struct {
	mu       sync.Mutex
	lives    map[uuid]*life
	asked    int // acknowledged requests
	added    int
	closed   int
	ends     map[string]int      // attempts by outcome
	states   map[string]int      // tasks by their last state
	starts   []stretch           // from when a task was ready until it was started
	runs     []stretch           // from when an attempt was started until it had ended
	rooms    map[string][]change // tasks that run by who runs them
	limits   map[int8][]change   // tasks that run by line, where it is limited
	freed    map[int8]int64      // when the last task of a limited line ended, or what it keeps its place for is over
	ticks    map[int8]map[int64]int
	trouble  []string
	last     event.ID
	err      error
	answered int // steps that the follower has got
}

func newLedger() *ledger {
	return &ledger{
		lives: map[uuid]*life{}, ends: map[string]int{}, states: map[string]int{},
		rooms: map[string][]change{}, limits: map[int8][]change{}, freed: map[int8]int64{}, ticks: map[int8]map[int64]int{},
	}
}

// of returns the life of a task, which begins when it is first heard of.
func (l *ledger) of(id string) (*life, uuid) {
	u, ok := uuidOf(id)
	if !ok {
		l.complain("%q is no id of a task", id)
	}
	one := l.lives[u]
	if one == nil {
		one = &life{line: -1}
		l.lives[u] = one
	}
	return one, u
}

// complain notes that something is wrong. The ledger is locked.
func (l *ledger) complain(format string, args ...any) {
	const most = 1000
	if len(l.trouble) < most {
		l.trouble = append(l.trouble, fmt.Sprintf(format, args...))
	}
}

// wrong notes that something is wrong, from outside of the ledger.
func (l *ledger) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complain(format, args...)
}

// acknowledged notes that a client was told of a task, and in which state it must end.
func (l *ledger) acknowledged(id, want string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, _ := l.of(id)
	l.asked++
	one.acked = true
	if want != "" {
		one.want = want
	}
}

// ran notes that an attempt is being run.
func (l *ledger) ran(id string, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, _ := l.of(id)
	bit := uint64(1) << min(number, 63)
	if one.ran&bit != 0 {
		one.twice++
		l.complain("task %s: attempt %d was handed out twice", id, number)
	}
	one.ran |= bit
}

// follow reads the journal of tasks from its beginning until ctx ends.
func (l *ledger) follow(ctx context.Context, c *client.Client) {
	for step, err := range c.Follow(ctx, client.Query{Types: []string{"TaskEvent"}, Wait: 5 * time.Second}) {
		l.mu.Lock()
		l.answered++
		if step.Snapshot != nil {
			l.complain("the follower of tasks was torn at %d, and cannot vouch for what it missed", l.last)
		}
		for i := range step.Events {
			l.see(&step.Events[i])
		}
		l.last = max(l.last, step.Last)
		if err != nil && ctx.Err() == nil {
			l.err = err
		}
		l.mu.Unlock()
	}
}

// see takes an event of the journal in.
func (l *ledger) see(e *event.Event) {
	one, u := l.of(e.Key.TaskID)
	one.trail = append(one.trail, *e)
	if e.ID <= l.last {
		l.complain("event %d comes after %d", e.ID, l.last)
	}
	l.last = e.ID
	at := int64(e.ID)
	switch e.Type {
	case event.TaskAdded:
		l.seeAdded(one, u, e)
	case event.TaskStarted:
		started := typed.ReadTaskStarted(e)
		one.highest = max(one.highest, started.Attempt)
		one.by = started.Instance
		if one.running || one.added == 0 || one.closed > 0 {
			l.complain("task %s is started while it is running %t, closed %d times", e.Key.TaskID, one.running, one.closed)
		}
		one.running, one.started = true, at
		one.starts++
		l.starts = append(l.starts, stretch{one.line, max(one.readyAt, l.freed[one.line]), at, u})
		l.occupy(one, at, +1)
	case event.TaskEnded:
		ended := typed.ReadTaskEnded(e)
		l.ends[string(ended.Outcome)]++
		l.seeEnded(one, u, at)
		one.readyAt = max(at, ended.RetryAt)
		if one.line >= 0 && lines[one.line].ordered {
			l.freed[one.line] = one.readyAt // nothing overtakes it
		}
	case event.TaskClosed:
		one.closed++
		one.state = string(typed.ReadTaskClosed(e).State)
		l.states[one.state]++
		l.closed++
		l.seeEnded(one, u, at)
	}
}

func (l *ledger) seeAdded(one *life, u uuid, e *event.Event) {
	if one.line >= 0 && lines[one.line].policy == atMost && one.closed == one.added && one.starts == 0 && one.state == "dropped" {
		l.ticks[one.line][u.created().Unix()]-- // it left with a suspension, and is made again since that was lifted in time
		*one = life{ran: one.ran}               // which may be heard of before this is
	}
	one.added++
	l.added++
	one.line = int8(lineOf(e.Key.Path))
	one.readyAt = max(int64(e.ID), typed.ReadTaskAdded(e).NotBefore)
	if one.line < 0 {
		l.complain("task %s is of the job %s, for which nobody asked", e.Key.TaskID, e.Key.Path)
		return
	}
	if lines[one.line].policy != noTicks {
		if l.ticks[one.line] == nil {
			l.ticks[one.line] = map[int64]int{}
		}
		l.ticks[one.line][u.created().Unix()]++
	}
}

// seeEnded notes the end of an attempt, if one is running.
func (l *ledger) seeEnded(one *life, u uuid, at int64) {
	if !one.running {
		return
	}
	one.running = false
	l.runs = append(l.runs, stretch{one.line, one.started, at, u})
	l.occupy(one, at, -1)
}

// occupy notes that one more or one less task is running.
func (l *ledger) occupy(one *life, at int64, by int) {
	who := one.by // a server is its host and its process
	if strings.HasPrefix(who, workerPrefix) {
		who, _, _ = strings.Cut(who, "/") // an instance is its name and its id
	}
	l.rooms[who] = append(l.rooms[who], change{at, by})
	if one.line >= 0 && lines[one.line].limit > 0 {
		l.limits[one.line] = append(l.limits[one.line], change{at, by})
		if by < 0 {
			l.freed[one.line] = max(at, l.freed[one.line])
		}
	}
}

// open returns how many tasks that were added or acknowledged have not ended.
func (l *ledger) open() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lives {
		if one.closed == 0 {
			n++
		}
	}
	return n
}

func (l *ledger) count() (added, closed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.added, l.closed
}

// trail returns what the journal says of a task, a line for each event, with the time of each; the ledger is locked.
func (l *ledger) trail(task string) string {
	u, _ := uuidOf(task)
	var b strings.Builder
	if one := l.lives[u]; one != nil {
		for _, e := range one.trail {
			fmt.Fprintf(&b, "\n\t%s %s %s %s", time.UnixMicro(int64(e.ID)).UTC().Format("15:04:05.000000"), e.Type, e.Key.Path, e.Fields)
		}
	}
	return b.String()
}

// troubles returns how much was wrong so far.
func (l *ledger) troubles() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.trouble)
}
