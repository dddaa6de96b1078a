package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Completion is the end of one attempt among several.
type Completion struct {
	Token  string
	Result Result
}

// Ended is what became of a [Completion].
type Ended struct {
	Token   string
	State   task.State   // afterwards; "" with an Err
	Dialect task.Dialect // of the task
	Err     error        // of this one alone: [ErrStale], [ErrNoLease], [ErrForeign], or what is wrong with the result; nothing was changed
}

// CompleteAll ends attempts of one instance, as [Queue.Complete] ends one, in as few writes as hold them, and returns what became of
// each, in their order. beside is written with each of them. The error is of the store, or of beside: then the first ends, as many as
// are returned, are written, and of the others it may not be known.
func (q *Queue) CompleteAll(ctx context.Context, instance string, all []Completion, beside Beside) ([]Ended, error) {
	ctx = detached(ctx)
	if len(all) == 0 {
		return nil, nil
	}
	first, err := q.gather(ctx, instance, all, beside)
	if err != nil {
		return nil, err
	}
	return q.completeFrom(ctx, first, instance, all)
}

// completeFrom is CompleteAll once the first of the writes is gathered.
func (q *Queue) completeFrom(ctx context.Context, e *endings, instance string, all []Completion) (ended []Ended, err error) {
	ended = make([]Ended, 0, len(all))
	for {
		e.before = ended
		n := len(e.ends)
		if err := q.writeEndings(ctx, e); err != nil {
			return ended, err
		}
		if ended, all = append(ended, e.ends...), all[n:]; len(all) == 0 {
			return ended, nil
		}
		if e, err = q.gather(ctx, instance, all, e.beside); err != nil {
			return ended, err
		}
	}
}

// endings is the ends of several attempts as one part of a write, with the caller's item.
type endings struct {
	q      *Queue
	beside Beside
	before []Ended          // of earlier writes of the same call
	all    []*ending        // nil for one that cannot even be prepared
	change []journal.Change // of each
	ends   []Ended
	fresh  bool // the changes are prepared, and nothing is known to have changed since

	ops, bytes int
	names      map[string]bool
}

// endings returns ends without any yet.
func (q *Queue) endings(beside Beside) *endings {
	return &endings{q: q, beside: beside, ops: 1, names: map[string]bool{}}
}

// gather prepares as many of the ends as fit in one write, at least one. An error is of the store.
func (q *Queue) gather(ctx context.Context, instance string, all []Completion, beside Beside) (*endings, error) {
	s := q.endings(beside)
	s.fresh = true
	for _, c := range all {
		e, err := q.ending(ctx, c.Token, c.Result)
		var change journal.Change
		if err == nil {
			e.by = instance
			change, err = e.prepare(ctx, nil)
		}
		if err != nil && !ofOneEnd(err) {
			return nil, err
		}
		if err == nil && !s.fits(e) {
			break
		}
		s.all, s.change = append(s.all, e), append(s.change, change)
		s.ends = append(s.ends, Ended{Token: c.Token, Err: err})
	}
	return s, nil
}

// fits reports whether an end goes into the same write as those before, and counts it then.
func (s *endings) fits(e *ending) bool {
	ops, bytes := e.bounds()
	bytes += 200 // in the caller's item
	names := e.touches()
	if len(s.names) > 0 {
		for _, name := range names {
			if s.names[name] {
				return false
			}
		}
		if s.ops+ops > s.q.maxOps || s.bytes+bytes > combineBytes {
			return false
		}
	}
	s.ops, s.bytes = s.ops+ops, s.bytes+bytes
	for _, name := range names {
		s.names[name] = true
	}
	return true
}

// ofOneEnd reports whether an error of a completion is its own, and not of the store or of the caller.
func ofOneEnd(err error) bool {
	return !isOpen(err) && !errors.Is(err, journal.ErrClosed) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// writeEndings writes ends, and stores in them what became of each. What the store refuses together is written one by one.
func (q *Queue) writeEndings(ctx context.Context, s *endings) error {
	err := error(nil)
	if s.live() > 0 {
		err = q.write(ctx, s)[0]
	}
	switch {
	case err == nil && s.live() > 0:
		s.beside.Written()
	case errors.Is(err, errNothing):
		err = nil
	case journal.Refused(err) && len(s.all) > 1:
		return q.writeApart(ctx, s)
	case journal.Refused(err):
		s.ends[0].Err, err = err, nil
	}
	s.note(ctx, err)
	return err
}

// note stores what became of each of the ends after their write.
func (s *endings) note(ctx context.Context, written error) {
	for i, e := range s.all {
		if end := &s.ends[i]; e != nil {
			state, err := e.ended(ctx, errors.Join(written, end.Err))
			if end.Err == nil && err == nil {
				end.State, end.Dialect = state, e.task.Dialect
			}
		}
	}
}

// writeApart writes each of the ends by itself.
func (q *Queue) writeApart(ctx context.Context, s *endings) error {
	for i, e := range s.all {
		if e == nil || s.ends[i].Err != nil {
			continue
		}
		before := append(slices.Clip(s.before), s.ends[:i]...)
		one := q.endings(s.beside)
		one.before, one.all, one.change, one.ends = before, s.all[i:i+1], s.change[i:i+1], s.ends[i:i+1]
		one.fits(e)
		if err := q.writeEndings(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// live returns how many of the ends have no error of their own.
func (s *endings) live() (n int) {
	for i := range s.ends {
		if s.ends[i].Err == nil {
			n++
		}
	}
	return n
}

func (s *endings) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	if lost != nil {
		if err := s.beside.Check(ctx); err != nil {
			return journal.Change{}, err
		}
	}
	if lost != nil || !s.fresh {
		if err := s.prepareAnew(ctx, lost); err != nil {
			return journal.Change{}, err
		}
	}
	s.fresh = false
	if s.live() == 0 {
		return journal.Change{}, errNothing
	}
	events := make([]event.Event, 0, 2*len(s.all))
	for i := range s.all {
		if s.ends[i].Err == nil {
			events = append(events, s.change[i].Events...)
		}
	}
	return journal.Change{Events: events, Ops: s.allOps}, nil
}

// prepareAnew prepares those ends that had no error before. An error is of the store.
func (s *endings) prepareAnew(ctx context.Context, lost *store.Conflict) (err error) {
	for i, e := range s.all {
		if s.ends[i].Err != nil {
			continue
		}
		if s.change[i], err = e.prepare(ctx, lost); err != nil && !ofOneEnd(err) {
			return err
		}
		s.ends[i].Err = err
	}
	return nil
}

func (s *endings) allOps(r journal.Receipt) []store.Op {
	ops := s.endOps(r)
	return append(ops, s.beside.Ended(s.told()))
}

// told returns what became of the ends of the call so far.
func (s *endings) told() []Ended { return append(slices.Clip(s.before), s.ends...) }

// endOps returns the operations of the ends, without that on the caller's item.
func (s *endings) endOps(r journal.Receipt) []store.Op {
	ops := make([]store.Op, 0, s.ops+1) // the journal adds the slot
	for i, e := range s.all {
		if s.ends[i].Err == nil {
			ops = append(ops, s.change[i].Ops(r)...)
			s.ends[i].State, s.ends[i].Dialect = e.task.State, e.task.Dialect
		}
	}
	return ops
}

func (s *endings) bounds() (ops, bytes int) { return s.ops, s.bytes }

func (s *endings) touches() []string {
	names := make([]string, 0, len(s.names))
	for name := range s.names {
		names = append(names, name)
	}
	return names
}

// private returns true, as that of one end does.
func (s *endings) private() bool { return true }
