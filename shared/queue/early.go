package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/beside"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
)

// What a claim decides by is several reads, some of which would wait for others. A worker that reports results wants the next tasks, so
// these reads begin as its request comes, beside those of its instance. Where a store takes what is asked for at one moment in one round
// trip, they are one.

// Early is what a claim of an instance reads, begun before the claim. It serves one claim, which goes by what was there when Early was
// made; nil serves none. Whoever has made it ends it.
type Early struct {
	began time.Time
	mark  Mark // when it began
	reads sync.WaitGroup
	rules func() (*rule.Set, error)
	due   func() error
	slots func() *limit.Set             // of the instance; nil: they could not be read
	heads map[string]func() readPage    // by partition, of lines that have one
	tasks func() map[string]*store.Item // by UUID, of those that will probably be the next ones
}

const (
	mostHeads = 8                      // lines that are read early at most
	headsFor  = 250 * time.Millisecond // how old they may be, when a claim of several queues comes to theirs
)

// End waits until all that was begun has ended: nobody reads for a claim that is over. Where a claim was made, it hardly ever waits.
func (e *Early) End() {
	if e != nil {
		e.reads.Wait()
	}
}

// ReadEarly begins to read what a claim of up to max tasks decides by; nil where no store is read for a claim, or none will be made. The
// reads end with ctx: what they lack then, the claim reads itself.
func (q *Queue) ReadEarly(ctx context.Context, by Claimer, max int) *Early {
	if by.Capacity <= 0 || max <= 0 {
		return nil
	}
	return q.strategy.readEarly(ctx, &by, min(max, q.maxClaim), true)
}

// readEarlyFor is ReadEarly of a claim that begins now. The instance's slots are read too, and are known to it then, unless they are already.
func (q *Queue) readEarlyFor(ctx context.Context, by *Claimer, at *instanceSlots, max int) *Early {
	if max <= 0 || q.waiters.isFull(by.Instance) {
		return nil
	}
	unknown := at.taken == nil
	e := q.strategy.readEarly(store.WithCompany(ctx, 0), by, min(max, q.maxClaim), unknown)
	if e != nil && unknown {
		at.know(e)
	}
	return e
}

func (s *shared) readEarly(ctx context.Context, by *Claimer, n int, slots bool) *Early {
	e := s.beginEarly(ctx, by)
	e.tasks = s.foreseen(ctx, &e.reads)
	s.readHeads(ctx, e, s.linesReadEarly(ctx, by), n)
	if slots {
		s.readSlots(ctx, e, by)
	}
	return e
}

// linesReadEarly returns the lines, as far as they are known, that a claimer takes from. Of an ordered queue a claim reads the one first entry,
// and only if none of its tasks runs.
func (s *shared) linesReadEarly(ctx context.Context, by *Claimer) []layout.Line {
	set, err := s.q.definitions.Current(ctx)
	if err != nil {
		return nil // the claim says so
	}
	return slices.DeleteFunc(s.q.known.Known(), func(l layout.Line) bool {
		return !by.takes(l) || set.QueueOf(l.Queue).Type == definition.Ordered
	})
}

func (s *shared) readInPlace(ctx context.Context, by *Claimer, l layout.Line) *Early {
	e := s.beginEarly(ctx, by)
	s.readHeads(ctx, e, []layout.Line{l}, 1)
	s.readSlots(ctx, e, by)
	return e
}

// beginEarly begins with what every claim decides by.
func (s *shared) beginEarly(ctx context.Context, by *Claimer) *Early {
	store.MoreCompany(ctx, 2)
	e := &Early{began: time.Now(), mark: s.q.Mark(), heads: map[string]func() readPage{}}
	e.rules = s.q.readRules(ctx, by, &e.reads)
	e.due = beside.Begin(&e.reads, func() error {
		_, err := s.q.Promote(detached(ctx)) // also for others, and to be told of
		return err
	})
	return e
}

// readSlots begins to read the slots of an instance.
func (s *shared) readSlots(ctx context.Context, e *Early, by *Claimer) {
	store.MoreCompany(ctx, 1)
	e.slots = beside.Begin(&e.reads, func() *limit.Set { set, _ := s.q.limits.Read(ctx, layout.InstanceLimit(by.Instance)); return set })
}

// isFresh reports whether a claim that begins now may go by what was read: otherwise a rule that was set, or a task that was added since would
// not count.
func (e *Early) isFresh() bool {
	if e == nil {
		return false
	}
	_, fresh := rule.Age(e.began)
	return fresh
}

// head returns the first entries of a line, once.
func (e *Early) head(partition string) (page readPage, ok bool) {
	if e == nil || e.heads[partition] == nil || time.Since(e.began) >= headsFor {
		return page, false
	}
	page = e.heads[partition]()
	delete(e.heads, partition)
	return page, true
}

// task returns the item of the task of an entry, if it was read and is the one that the entry is of.
func (e *Early) task(p *layout.Place) *store.Item {
	if e == nil || e.tasks == nil {
		return nil
	}
	if item := e.tasks()[p.UUID]; item != nil && item.Version == p.Of {
		return item
	}
	return nil
}

// readHeads begins to read the first entries of lines, for a claim of n. What has fallen due is among them: where reading has a price, they
// are read once it is ready, and elsewhere at once, and again if there was something to make ready.
func (s *shared) readHeads(ctx context.Context, e *Early, lines []layout.Line, n int) {
	for _, l := range lines {
		if read, _ := s.q.parts.of(l); read > 1 || len(e.heads) == mostHeads || s.q.onePart && s.metLately(l.Queue) {
			continue
		}
		r := store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: n}
		if s.metLately(l.Queue) {
			r.Limit += lookAhead
		} else if s.q.onePart {
			r.Limit += n + min(s.chosen.underWay(), lookAhead) // what the next claim will probably start, and what others are about to
		}
		if s.q.onePart {
			store.MoreCompany(ctx, 1)
		}
		e.heads[r.Partition] = beside.Begin(&e.reads, func() readPage {
			if !s.q.onePart {
				_ = e.due() // the claim says so
				return s.query(ctx, r)
			}
			before := s.moves.Load()
			page := s.query(ctx, r)
			if _ = e.due(); s.moves.Load() != before {
				page = s.query(ctx, r)
			}
			return page
		})
	}
}

// query reads a range of a part.
func (s *shared) query(ctx context.Context, r store.Range) readPage {
	began := s.q.micro()
	page, err := s.q.store.Query(ctx, r)
	return readPage{r.From, began, page, layout.Failure("read an index", err)}
}

// foresee notes entries that come next after those that a claim has picked, where a read has no price.
func (s *shared) foresee(next []layout.Place) {
	if !s.q.onePart {
		return
	}
	keys := make([]store.Key, min(len(next), s.q.maxClaim))
	for i := range keys {
		keys[i] = layout.TaskKey(next[i].UUID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = keys
}

// foreseen begins to read the tasks of the entries that were noted last, for the claim that comes first.
func (s *shared) foreseen(ctx context.Context, reads *sync.WaitGroup) func() map[string]*store.Item {
	s.mu.Lock()
	keys := s.after
	s.after = nil
	s.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	store.MoreCompany(ctx, 1)
	return beside.Begin(reads, func() map[string]*store.Item {
		items, _ := s.q.store.Get(ctx, keys...) // the claim reads them again
		found := make(map[string]*store.Item, len(items))
		for _, item := range items {
			if item != nil {
				found[item.Key.Sort] = item
			}
		}
		return found
	})
}
