package queue

import (
	"context"
	"sync"

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
	reads sync.WaitGroup
	rules func() (*rule.Set, error)
	due   func() error
	slots func() *limit.Set             // of the instance; nil: they could not be read
	heads map[string]func() readPage    // by partition, of lines that have one
	tasks func() map[string]*store.Item // by UUID, of those that will probably be the next ones
}

// mostHeads is how many lines are read early at most.
const mostHeads = 8

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
	return q.strategy.readEarly(ctx, &by, min(max, MaxClaim), true)
}

// readEarlyFor is ReadEarly of a claim that begins now. The instance's slots are read too, and are known to it then, unless they are already.
func (q *Queue) readEarlyFor(ctx context.Context, by *Claimer, at *instanceSlots, max int) *Early {
	if max <= 0 || q.waiters.isFull(by.Instance) {
		return nil
	}
	unknown := at.taken == nil
	e := q.strategy.readEarly(store.WithCompany(ctx, 0), by, min(max, MaxClaim), unknown)
	if e != nil && unknown {
		at.know(e)
	}
	return e
}

func (s *shared) readEarly(ctx context.Context, by *Claimer, n int, slots bool) *Early {
	q := s.q
	store.MoreCompany(ctx, 2)
	e := &Early{}
	e.rules = q.readRules(ctx, by, &e.reads)
	e.due = beside(&e.reads, func() error { _, err := q.Promote(ctx); return err })
	e.tasks = s.foreseen(ctx, &e.reads)
	e.heads = s.heads(ctx, by, n, e)
	if slots {
		store.MoreCompany(ctx, 1)
		e.slots = beside(&e.reads, func() *limit.Set { set, _ := q.limits.Read(ctx, layout.InstanceLimit(by.Instance)); return set })
	}
	return e
}

// head returns the first entries of a line, once.
func (e *Early) head(partition string) (page readPage, ok bool) {
	if e == nil || e.heads[partition] == nil {
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

// heads begins to read the first entries of the lines that a claimer takes from, for a claim of n, once what has fallen due is ready.
func (s *shared) heads(ctx context.Context, by *Claimer, n int, e *Early) map[string]func() readPage {
	heads := map[string]func() readPage{}
	for _, l := range s.q.known.Known() {
		if read, _ := s.q.parts.of(l); read > 1 || !by.takes(l) || len(heads) == mostHeads {
			continue
		}
		r := store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: n}
		if s.metLately(l.Queue) {
			r.Limit += lookAhead
		} else if s.q.onePart {
			r.Limit += n // what the next claim will probably start
		}
		heads[r.Partition] = beside(&e.reads, func() readPage {
			_ = e.due() // the claim says so
			return s.query(ctx, r)
		})
	}
	return heads
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
	keys := make([]store.Key, min(len(next), MaxClaim))
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
	return beside(reads, func() map[string]*store.Item {
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

// beside begins a read beside what its caller goes on with, and returns a function that waits for its result. It is one of reads.
func beside[T any](reads *sync.WaitGroup, read func() T) (wait func() T) {
	var result T
	done := make(chan struct{})
	reads.Go(func() {
		defer close(done)
		result = read()
	})
	return func() T {
		<-done
		return result
	}
}
