package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
)

// leaseSweep is one look at the leases of all processes, or at those that have an item and this process's own.
type leaseSweep struct {
	q      *Queue
	lost   int
	next   int64           // when the next one runs out, in microseconds since 1970; 0 if none does
	items  map[string]bool // by UUID: the tasks whose leases have an item
	given  map[string]bool // by UUID: the tasks whose leases this process keeps, and knows to be valid
	failed []error         // of single leases, which do not keep the others
}

// sweepLeases ends the leases that have run out, and returns when the next one does, in microseconds since 1970; 0 if there is none.
// Leases that have an item are read from the index; which other tasks run, the journal tells. own leaves out what only the journal tells,
// for a process that may not have folded it: of leases without an item it then knows those that it has given.
func (q *Queue) sweepLeases(ctx context.Context, own bool) (lost int, next int64, err error) {
	if err := q.mayDecide(ctx); err != nil {
		return 0, 0, err
	}
	s := leaseSweep{q: q, items: map[string]bool{}, given: map[string]bool{}}
	if own {
		err = s.ofThisProcess(ctx)
	} else {
		err = s.ofAll(ctx)
	}
	return s.lost, s.next, errors.Join(append(s.failed, err)...)
}

// ofAll ends the leases of all processes. Where the journal cannot tell what runs, those that have an item and this process's own are ended
// all the same.
func (s *leaseSweep) ofAll(ctx context.Context) error {
	runs, unknown := retry(ctx, s.q.store, func() ([]layout.Run, error) { return layout.Running(ctx, s.q.journal) })
	if err := s.ofItems(ctx); err != nil {
		return err
	}
	if err := s.ofGiven(ctx); err != nil || unknown != nil {
		return errors.Join(err, unknown)
	}
	return s.ofRuns(ctx, runs)
}

// ofThisProcess ends the leases that this process has given and, when one may be over, those that have an item.
func (s *leaseSweep) ofThisProcess(ctx context.Context) error {
	seen, next := s.q.leases.itemsSeen()
	if now := s.q.micro(); now-seen >= definition.DefaultLease.Microseconds() || now < seen || next != 0 && next <= now {
		if err := s.ofItems(ctx); err != nil {
			return err
		}
	} else {
		s.until(next)
	}
	return s.ofGiven(ctx)
}

// ofItems ends leases that have an item.
func (s *leaseSweep) ofItems(ctx context.Context) error {
	began := s.q.micro()
	s.q.leases.readItems()
	for item, err := range layout.AllLeases(ctx, s.q.store) {
		if err != nil {
			return err
		}
		token := item.Key.Sort
		uuid, _, _ := layout.ParseToken(token)
		s.items[uuid] = true
		s.q.leases.dropOlder(token, item.Version)
		var l layout.Lease
		if err := layout.Decode(item, &l); err != nil {
			s.failed = append(s.failed, err)
			continue
		}
		if err := s.look(ctx, token, &l, item.Version); err != nil {
			return err
		}
	}
	if len(s.failed) == 0 { // otherwise the next look reads them again
		s.q.leases.sawItems(began, s.next)
	}
	return nil
}

// ofGiven ends leases that this process has given, as far as it keeps them. Of those that seem to be over, others have mostly heard or
// ended them: they are read together.
func (s *leaseSweep) ofGiven(ctx context.Context) error {
	var over []string
	for token, h := range s.q.leases.all() {
		if at := s.q.over(&h.Lease); at > s.q.micro() {
			s.until(at)
			s.given[h.UUID] = true
		} else {
			over = append(over, token)
		}
	}
	slices.Sort(over)
	for page := range slices.Chunk(over, layout.AtOnce/2) {
		if err := s.ofPage(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// ofPage reads some of the leases that this process keeps, and ends those that have run out. What cannot be read waits for the next sweep;
// what is damaged is not kept any more.
func (s *leaseSweep) ofPage(ctx context.Context, tokens []string) error {
	held, err := layout.LoadLeases(ctx, s.q.store, tokens)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.failed = append(s.failed, err)
	}
	for i, h := range held {
		if h == nil {
			s.q.leases.drop(tokens[i])
			continue
		}
		s.q.leases.refresh(tokens[i], h)
		if err := s.look(ctx, tokens[i], &h.Lease, h.Version); err != nil {
			return err
		}
	}
	return nil
}

// given is a lease as it was given, and its token.
type given struct {
	token string
	lease layout.Lease
}

// ofRuns ends leases without an item, of attempts that the journal knows. Whoever is heard of has an item before the lease is over; so of
// what runs for longer than the shortest lease few have none, and those are read once. A lease that is shorter, since its holder's own was
// to end before, is found so much later. The time of an attempt is its event's id, which may be ahead of every clock: then it is read.
func (s *leaseSweep) ofRuns(ctx context.Context, runs []layout.Run) error {
	set, err := s.q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	before, now := s.q.leases.read.Load(), map[layout.Run]given{}
	defer s.q.leases.read.Store(&now)
	young, began := set.LeastLease().Microseconds(), s.q.micro()
	var unread []layout.Run
	for _, r := range runs {
		switch {
		case s.items[r.UUID]:
		case before != nil && (*before)[r].token != "":
			now[r] = (*before)[r]
		case r.Since <= began && r.Since+young > began:
			if !s.given[r.UUID] {
				s.until(r.Since + young)
			}
		default:
			unread = append(unread, r)
		}
	}
	for page := range slices.Chunk(unread, layout.AtOnce) {
		if err := s.readRuns(ctx, page, now); err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.failed = append(s.failed, err) // what keeps one page may not keep another
		}
	}
	for _, r := range runs {
		if l, is := now[r]; is {
			if err := s.look(ctx, l.token, &l.lease, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// readRuns reads the leases of a page of attempts.
func (s *leaseSweep) readRuns(ctx context.Context, page []layout.Run, leases map[layout.Run]given) error {
	keys := make([]store.Key, len(page))
	for i := range page {
		keys[i] = layout.TaskKey(page[i].UUID)
	}
	items, err := s.q.store.Get(ctx, keys...)
	if err != nil {
		return layout.Failure("read tasks", err)
	}
	for i, item := range items {
		if item == nil {
			continue
		}
		var t layout.Started
		if err := layout.Decode(item, &t); err != nil {
			s.failed = append(s.failed, err)
		} else if l, is := t.AsGiven(); is {
			leases[page[i]] = given{t.Task.Lease, l}
		}
	}
	return nil
}

// until notes that a lease runs out at a time; 0: at none.
func (s *leaseSweep) until(at int64) {
	s.next = earlier(s.next, at)
}

// look ends one lease if it has run out. version is that of its item, 0 if it was read without one. Race: a heartbeat that comes first has
// changed the lease, and the end has the condition that it is as it was read. An error is one that keeps all others too.
func (s *leaseSweep) look(ctx context.Context, token string, l *layout.Lease, version int64) error {
	expires := s.q.over(l)
	if expires <= s.q.micro() {
		var err error
		expires, err = s.end(ctx, token, l, version)
		if err != nil && (isOpen(err) || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			s.failed = append(s.failed, err)
		}
	}
	s.until(expires)
	return nil
}

// end ends a lease that has run out, unless a heartbeat has come: then expires is when it does, in microseconds since 1970; otherwise 0.
func (s *leaseSweep) end(ctx context.Context, token string, l *layout.Lease, version int64) (expires int64, err error) {
	expires, err = s.q.endUnlessHeard(journal.WithActor(ctx, ""), token, ranOut(l))
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrNoLease): // its worker was quicker
		return 0, s.q.removeLeft(ctx, token, l, version)
	case err != nil, expires != 0:
		return expires, err
	}
	s.lost++
	s.q.measured.leasesLost.Add(1)
	s.q.watchers.tell(l.Instance)
	s.q.log.Warn("a lease ran out", "task_id", l.UUID, "job", l.Job, "instance", l.Instance)
	return 0, nil
}

// removeLeft removes the item of a lease that is over, and the log of a task that is gone: see [layout.Held.GiveBack].
func (q *Queue) removeLeft(ctx context.Context, token string, l *layout.Lease, version int64) error {
	q.leases.drop(token)
	if version == 0 {
		return nil
	}
	if l.Logged > 0 {
		if _, _, err := layout.LoadTask(ctx, q.store, l.UUID); errors.Is(err, ErrNoTask) {
			if err := tasklog.Drop(ctx, q.store, l.UUID); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	err := q.apply(ctx, store.Delete(layout.LeaseKey(token), store.VersionIs(version)))
	if store.AsConflict(err) != nil {
		return nil // it was removed with the end
	}
	return err
}

// over returns when a lease is over, in microseconds since 1970: when it expires, but, if the clock has jumped, not before its
// holder had the lease's length to send a heartbeat since.
func (q *Queue) over(l *layout.Lease) int64 {
	if left := l.Length - q.clock.Steady(); left > 0 {
		return max(l.Expires, q.micro()+left.Microseconds())
	}
	return l.Expires
}
