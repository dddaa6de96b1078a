package queue

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// part is one change of those that share a write (package groupcommit): in one slot of the journal, each costs a fraction of a
// write.
type part interface {
	// prepare is a [journal.Prepare] of this part alone; lost may hold other parts' items too. Its error, [errNothing] too,
	// ends this part only.
	prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error)

	// bounds returns the most operations that the part has, and about how many bytes.
	bounds() (ops, bytes int)

	// touches returns names of items; no two parts of one write may have one in common.
	touches() []string

	// private reports whether others hardly change what prepare reads while the part waits. Then its caller prepares it at
	// once, concurrently with others, instead of the goroutine that writes for all.
	private() bool
}

// joined is a part that goes into a write.
type joined struct {
	part
	change     journal.Change // as it was prepared last
	prepared   bool           // the change is not written yet
	since      time.Time      // when it was about to be prepared last
	over       bool           // its preparation failed, and it is not written
	ops, bytes int
	from, to   int // which operations of the newest write were its own
	touched    []string
	actor      string // on whose behalf it is asked for
	err        error
}

// join prepares a part if it is private, and reads its bounds.
func join(ctx context.Context, p part) *joined { return joinFor(detached(ctx), journal.Actor(ctx), p) }

// joinFor is join of a part that is asked for on behalf of an actor, in a context without end.
func joinFor(ctx context.Context, actor string, p part) *joined {
	j := &joined{part: p, actor: actor}
	if p.private() {
		j.since = time.Now()
		if j.change, j.err = p.prepare(ctx, nil); j.err != nil {
			j.over = true
			return j
		}
		j.prepared = true
	}
	j.ops, j.bytes = p.bounds()
	j.touched = p.touches()
	return j
}

// signed returns the part's events, with who asked for them.
func (j *joined) signed(events []event.Event) []event.Event {
	for i := range events {
		if events[i].By == "" {
			events[i].By = j.actor
		}
	}
	return events
}

// newCombiner returns what gathers the parts into writes; shared says that other processes use the store too. There each write is
// a request of its own, and two of them go side by side; but where writes follow one another closely, a second begins only for several
// parts, since each takes a ticket of the journal's one sequencer. A store that this process has to itself is fastest with one writer and
// larger writes, as long as everything that waits fits in one.
func (q *Queue) newCombiner(shared bool) *groupcommit.Group[*joined] {
	o := groupcommit.Options[*joined]{
		Batch: func() func(*joined) bool { return (&content{most: q.maxOps}).add },
		Write: q.writeTogether,
		More: func(waiting []*joined) bool {
			return shared && (q.onePart || len(waiting) >= enough || !q.pacer.IsFrequent()) || exceed(waiting, q.maxOps)
		},
		Prompt: !shared,
	}
	if shared {
		o.Again = groupcommit.Slow
	}
	return groupcommit.New(o)
}

// enough is how many parts are worth a second write beside another.
const enough = 4

const (
	combineOps   = store.MaxOps - journalOps // in any store; see [Queue.maxOps]
	journalOps   = 10                        // that the journal may add
	combineBytes = 1 << 20
)

// exceed reports whether parts have more operations than one write holds, which is most.
func exceed(parts []*joined, most int) bool {
	ops := 0
	for _, j := range parts {
		if ops += j.ops; ops > most {
			return true
		}
	}
	return false
}

// content is what the parts of one write have together.
type content struct {
	most       int // operations
	ops, bytes int
	touched    map[string]bool
}

// add adds a part if it fits; the first does.
func (c *content) add(j *joined) bool {
	for _, name := range j.touched {
		if c.touched[name] {
			j.prepared = false // another part changes what it has read
			return false
		}
	}
	if c.ops > 0 && (c.ops+j.ops > c.most || c.bytes+j.bytes > combineBytes) {
		return false
	}
	c.ops, c.bytes = c.ops+j.ops, c.bytes+j.bytes
	for _, name := range j.touched {
		if c.touched == nil {
			c.touched = map[string]bool{}
		}
		c.touched[name] = true
	}
	return true
}

// write writes parts, in one write if they fit, and returns an error for each part.
func (q *Queue) write(ctx context.Context, parts ...part) []error {
	actor := journal.Actor(ctx)
	ctx = detached(ctx)
	mine := make([]*joined, len(parts))
	for i, p := range parts {
		mine[i] = joinFor(ctx, actor, p)
	}
	return q.send(ctx, mine...)
}

// send is write of parts that are joined.
func (q *Queue) send(ctx context.Context, mine ...*joined) []error {
	live := mine
	if slices.ContainsFunc(mine, isOver) {
		live = slices.DeleteFunc(slices.Clone(mine), isOver)
	}
	_ = q.combiner.Do(detached(ctx), live...) // what is written is not given up with its caller
	errs := make([]error, len(mine))
	for i, j := range mine {
		errs[i] = j.err
	}
	return errs
}

func isOver(j *joined) bool { return j.over }

// detached returns ctx without its end.
func detached(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// writeTogether writes the parts of one write.
func (q *Queue) writeTogether(ctx context.Context, batch []*joined) {
	q.pacer.Began()
	journal.WriteTogether(ctx, q.journal, batch, prepareTogether, func(batch []*joined, _ journal.Receipt, err error) {
		if journal.Refused(err) {
			err = layout.Failure("write tasks", err)
		}
		for _, j := range batch {
			j.err = err
		}
	})
}

// stale is after how long a change is prepared again that is not lost: its leases and times count from when it was.
const stale = time.Second

// isLost reports whether a conflict is of the part's own operations. If it is not, its change is what it would be anew.
func (j *joined) isLost(c *store.Conflict) bool {
	return slices.ContainsFunc(c.Failed, func(f store.Failure) bool { return f.Op >= j.from && f.Op < j.to })
}

// prepareTogether is prepare of several parts. It leaves out those that have an error of their own. After a conflict, it prepares those
// parts again whose own it is: each reads from the store what it rests on, and meanwhile all wait.
func prepareTogether(ctx context.Context, batch []*joined, lost *store.Conflict) (live []*joined, all journal.Change, err error) {
	for _, j := range batch {
		if h, is := j.part.(*handover); is && h.isOvertaken(batch) {
			h.tried, j.prepared = true, false // all of them become ready
		}
		if time.Since(j.since) >= stale || !j.prepared && (lost == nil || j.isLost(lost)) {
			j.since = time.Now()
			if j.change, j.err = j.prepare(ctx, lost); j.err != nil {
				continue
			}
		}
		j.prepared = false // for once
		live, all.Events = append(live, j), append(all.Events, j.signed(j.change.Events)...)
	}
	all.Ops = func(r journal.Receipt) (ops []store.Op) {
		for _, j := range live {
			j.from = len(ops)
			ops = joinedTo(ops, j.change.Ops(r))
			j.to = len(ops)
		}
		return ops
	}
	return live, all, nil
}
