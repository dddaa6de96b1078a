package queue

import (
	"context"
	"errors"
	"slices"

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
	failed []error         // of single leases, which do not keep the others
}

// sweepLeases ends the leases that have run out, and returns when the next one does, in microseconds since 1970; 0 if there is none.
// Leases that have an item are read from the index; which other tasks run, the journal tells. own leaves out what only the journal tells,
// for a process that may not have folded it: of leases without an item it then knows those that it has given.
func (q *Queue) sweepLeases(ctx context.Context, own bool) (lost int, next int64, err error) {
	if err := q.mayDecide(ctx); err != nil {
		return 0, 0, err
	}
	s := leaseSweep{q: q, items: map[string]bool{}}
	err = s.ofItems(ctx)
	switch {
	case err != nil:
	case own:
		err = s.ofThisProcess(ctx)
	default:
		err = s.ofRunning(ctx)
	}
	return s.lost, s.next, errors.Join(append(s.failed, err)...)
}

// ofItems ends leases that have an item.
func (s *leaseSweep) ofItems(ctx context.Context) error {
	for item, err := range layout.AllLeases(ctx, s.q.store) {
		if err != nil {
			return err
		}
		token := item.Key.Sort
		uuid, _, _ := layout.ParseToken(token)
		s.items[uuid] = true
		var l layout.Lease
		if err := layout.Decode(item, &l); err != nil {
			s.failed = append(s.failed, err)
		} else if err := s.look(ctx, token, &l, item.Version); err != nil {
			return err
		}
	}
	return nil
}

// ofRunning ends leases without an item, of all tasks that run.
func (s *leaseSweep) ofRunning(ctx context.Context) error {
	keys, err := retry(ctx, s.q.store, func() ([]store.Key, error) { return layout.Running(ctx, s.q.journal) })
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k store.Key) bool { return s.items[k.Sort] })
	for item, err := range layout.Tasks(ctx, s.q.store, keys) {
		if err != nil {
			return err
		}
		var t layout.Started
		if err := layout.Decode(item, &t); err != nil {
			s.failed = append(s.failed, err)
		} else if l, is := t.AsGiven(); !is {
			continue
		} else if err := s.look(ctx, t.Task.Lease, &l, 0); err != nil {
			return err
		}
	}
	return nil
}

// ofThisProcess ends leases without an item that this process has given, as far as it remembers them.
func (s *leaseSweep) ofThisProcess(ctx context.Context) error {
	for token, h := range s.q.leases.all() {
		if err := s.look(ctx, token, &h.Lease, 0); err != nil {
			return err
		}
	}
	return nil
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
	if expires != 0 && (s.next == 0 || expires < s.next) {
		s.next = expires
	}
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
