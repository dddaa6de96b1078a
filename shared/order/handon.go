package order

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// handOn gives a lock to the first in line, as long as it fits. What is too much for one write is left to an alarm; so is what cannot
// be read yet. A damaged order is passed over: it must not keep the step of this one from its end.
func (m *move) handOn(ctx context.Context, l *lock) error {
	if l.Waiting == 0 || !l.fits(m.set, true) && !l.fits(m.set, false) {
		return nil
	}
	l.unread = 0
	for entry, err := range store.All(ctx, m.e.store, store.Range{Table: store.Work, Partition: lockLine(l.name), Limit: lineBatch}) {
		if err != nil {
			return journal.Failure("read the orders that wait for a lock", err)
		}
		next, err := m.contending(ctx, l, entry)
		switch {
		case err != nil:
			return err
		case next == nil:
			continue
		case !l.fits(m.set, next.order.Line.Shared):
			return nil
		case m.books.full():
			m.alarmLock(l.name, m.now)
			return nil
		}
		m.books.moved[next.order.Path()] = true
		if err := next.grant(ctx, l); err != nil {
			return err
		}
		m.others = append(m.others, next)
	}
	if l.Waiting > 0 {
		m.alarmLock(l.name, m.now+stateAge.Microseconds())
	}
	return nil
}

// contending returns the move of an order that waits at a place of a lock's line; nil if it does so no more, as far as can be read, if
// this write moves it already, or if it is passed over.
func (m *move) contending(ctx context.Context, l *lock, entry *store.Item) (*move, error) {
	var is contender
	if err := decode(entry, &is); err != nil {
		m.e.skip(entry.Key, err)
		l.unread++
		return nil, nil
	}
	if m.books.moved[is.Path] {
		return nil, nil
	}
	next, err := m.e.moveOf(ctx, is.Path)
	switch {
	case errors.Is(err, ErrNoOrder):
		m.dropFromLine(l, entry, is.Path)
		return nil, nil
	case m.e.passesOver(is.Path, err):
		l.unread++
		return nil, nil
	case err != nil:
		return nil, err
	}
	if at := next.order.Line; at == nil || at.Name != l.name || at.Sort != entry.Key.Sort {
		return nil, nil
	}
	next.books = m.books
	return next, nil
}

// dropFromLine takes a place of a lock's line away whose order is gone, which no write leaves behind. Race: the write that adds the order
// may be under way, or that which takes both away may just have ended.
func (m *move) dropFromLine(l *lock, entry *store.Item, path string) {
	l.Waiting, l.changed = l.Waiting-1, true
	m.books.moved[path] = true
	gone, absent := store.Delete(entry.Key, store.VersionIs(entry.Version)), store.Check(orderKey(path), store.Absent)
	m.follow.Ops = append(m.follow.Ops, gone, absent)
}

// grant gives the order the lock that it waits for: it goes on to the next lock, or to its step.
func (m *move) grant(ctx context.Context, l *lock) error {
	o, w := m.order, m.order.Line.NodeLock
	l.Waiting--
	m.delete(work(lockLine(l.name), o.Line.Sort))
	o.Line, o.Waiting = nil, ""
	m.hold(l, w)
	n, err := m.node()
	if err != nil {
		return err
	}
	m.sayItIsOver()
	return m.enter(ctx, n)
}

// alarmLock has the line of a lock looked at again at a time.
func (m *move) alarmLock(name string, at int64) {
	m.book().alarm(at, dueKey(at, lockAlarm+name), []byte(lockAlarm+name))
}

// serveLock hands a lock on to those in line, until that takes no more than a write. If nobody gets it, unchanged demands that the lock
// is as it was read.
func (e *Engine) serveLock(ctx context.Context, name string) (unchanged []store.Op, err error) {
	for more := true; more && err == nil; {
		err = e.queue.Change(ctx, []string{lockKey(name).Partition}, func(ctx context.Context, _ *store.Conflict) (f queue.Follow, err error) {
			f, more, unchanged, err = e.serveSome(ctx, name)
			return f, err
		})
	}
	return unchanged, err
}

// serveSome hands a lock on to the first in line, and reports whether others are to get it by another write. Unchanged is that of
// serveLock.
func (e *Engine) serveSome(ctx context.Context, name string) (f queue.Follow, more bool, unchanged []store.Op, err error) {
	set, err := e.definitions.Current(ctx)
	if err != nil {
		return f, false, nil, err
	}
	m := &move{e: e, set: set, order: new(Order), now: e.micro()}
	l, err := m.lock(ctx, name)
	if err != nil {
		return f, false, nil, err
	}
	if err := m.handOn(ctx, l); err != nil {
		return f, false, nil, err
	}
	whom := len(m.books.alarms) > 0 && l.Waiting > l.unread // a further alarm may find somebody
	if len(m.others) == 0 && !l.changed && !whom {
		return f, false, []store.Op{store.Check(lockKey(name), l.cond)}, nil
	}
	more = m.books.full()
	m.includeOthers()
	return m.withBook(m.follow), more, nil, nil
}
