package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// carryOn does what is left of an act on many, or a part of it: then it sets an alarm. One that another process does is left to it,
// with an alarm for when that would have ended. For it the time is not before that of the alarm which is due, even if the clock has gone
// back since, and the next alarm is another one: this one is taken away afterwards. If there was nothing to do, unchanged demands that
// the act is as it was read: the write that begins or resumes it sets the alarm too, which may be seen first.
func (e *Engine) carryOn(ctx context.Context, id string, due int64) (unchanged []store.Op, err error) {
	for began := max(e.micro(), due); ; {
		b, err := e.bulkOf(ctx, id)
		if errors.Is(err, ErrNoBulk) {
			return nil, journal.Failure("remove an act", e.store.Remove(ctx, store.Range{Table: store.Work, Partition: bulkPartition(id)}))
		}
		if err != nil {
			return nil, err
		}
		now := max(e.micro(), due)
		switch {
		case b.State != BulkRunning:
			return e.forget(ctx, b)
		case b.Owner != e.name && b.Until > now:
			return nil, e.callAgain(ctx, b, b.Until)
		case b.Pace > now:
			return nil, e.callAgain(ctx, b, b.Pace)
		case now-began > bulkSlice.Microseconds():
			return nil, e.callAgain(ctx, b, max(now, due+1))
		}
		if err := e.batch(ctx, id, now); err != nil {
			return nil, err
		}
	}
}

// callAgain sets an alarm for an act.
func (e *Engine) callAgain(ctx context.Context, b *bulk, at int64) error {
	e.alarms.at(at)
	return e.put(ctx, "set an alarm", b.alarm(at))
}

// forget removes an act that was done or stopped long ago, or that was never complete. Unchanged demands of another one that it is as it
// was read.
func (e *Engine) forget(ctx context.Context, b *bulk) (unchanged []store.Op, err error) {
	due := max(b.At, b.Until) + bulkKept.Microseconds()
	if b.State == "" {
		due = b.At + bulkMade.Microseconds()
	}
	if due > e.micro() {
		return []store.Op{store.Check(bulkKey(b.ID), store.VersionIs(b.version))}, nil // by another alarm
	}
	err = e.store.Write(ctx, store.Write{Token: e.token(), Ops: []store.Op{store.Delete(bulkKey(b.ID), store.VersionIs(b.version))}})
	if store.AsConflict(err) != nil {
		return nil, nil // it has become complete
	}
	if err == nil {
		err = e.store.Remove(ctx, store.Range{Table: store.Work, Partition: bulkPartition(b.ID)})
	}
	return nil, journal.Failure("remove an act", err)
}

// batch acts on the next of what an act selects, and notes the progress. Race: another process may do the same, or somebody stops the
// act: each order's mark is written once, with the order, and the progress only by who has read it as it is.
func (e *Engine) batch(ctx context.Context, id string, began int64) error {
	e.acting <- struct{}{}
	defer func() { <-e.acting }()
	b, err := e.bulkOf(ctx, id)
	if err != nil || b.State != BulkRunning || b.Pace > began { // another process has done a batch since
		return err
	}
	if mine, err := e.take(ctx, b); !mine || err != nil {
		return err
	}
	these, err := e.nextOf(ctx, b)
	if err != nil {
		return err
	}
	marks, err := e.marksOf(ctx, b)
	if err != nil {
		return err
	}
	did, errs := e.actOnEach(journal.WithActor(ctx, b.By), b, these, marks)
	if again, err := e.goOver(ctx, b, these, errs); again || err != nil {
		return err
	}
	for i := range these {
		if did[i] {
			b.Done++
		} else {
			b.Failed++
		}
	}
	return e.note(ctx, b, len(these), began)
}

// take keeps an act to this process for a while, unless another one has changed it.
func (e *Engine) take(ctx context.Context, b *bulk) (mine bool, err error) {
	now := e.micro()
	if b.Owner == e.name && b.Until > now {
		return true, nil
	}
	b.Owner, b.Until = e.name, now+bulkLease.Microseconds()
	err = e.put(ctx, "take an act", b.put())
	if store.AsConflict(err) != nil {
		return false, nil
	}
	return err == nil, err
}

// goOver reports whether a batch is to be gone over again, since it is not known of some whether they can be acted on. The error says
// why. What fails again and again, or for a reason of its own, counts as failed.
func (e *Engine) goOver(ctx context.Context, b *bulk, these []string, errs []error) (again bool, err error) {
	all := errors.Join(errs...)
	switch {
	case all == nil:
		return false, nil
	case ctx.Err() != nil || errors.Is(all, journal.ErrClosed) || errors.Is(all, store.ErrClosed):
		return true, all
	}
	passing := func(err error) bool {
		return e.away(ctx, err) || errors.Is(err, store.ErrBusy) || errors.Is(err, errMissing) || errors.Is(err, context.DeadlineExceeded)
	}
	if slices.ContainsFunc(errs, passing) && b.Tries < bulkGoes {
		b.Tries++
		if err := e.put(ctx, "note that an act is tried again", b.put()); err != nil && store.AsConflict(err) == nil {
			return true, errors.Join(all, err)
		}
		return true, all
	}
	for i, err := range errs {
		if err != nil {
			e.log.Warn("an act on many counts one as failed", "act", b.Kind, "id", b.ID, "on", these[i], "error", err)
		}
	}
	return false, nil
}

// note writes the progress of an act after a batch. With a rate the next batch begins so much later than this one began, and is left to
// whichever process has its alarm: no process stays with the act meanwhile. The batch's marks stay as long as the act: another process may
// still be at the same batch.
func (e *Engine) note(ctx context.Context, b *bulk, size int, began int64) error {
	now := e.micro()
	b.Next += size
	b.Owner, b.Until, b.Tries = e.name, now+bulkLease.Microseconds(), 0
	if b.PerSecond > 0 {
		b.Owner, b.Until, b.Pace = "", now, began+int64(size)*time.Second.Microseconds()/int64(b.PerSecond)
	}
	var ops []store.Op
	if b.Next >= b.Count {
		b.State, b.Until = BulkDone, now
		ops = append(ops, b.alarm(now+bulkKept.Microseconds()))
	}
	err := e.store.Write(ctx, store.Write{Token: e.token(), Ops: append(ops, b.put())})
	if store.AsConflict(err) != nil {
		return nil // it is read anew
	}
	return journal.Failure("note the progress of an act", err)
}

// nextOf returns the next of what an act selects: of an act with a rate no more than it does in a second.
func (e *Engine) nextOf(ctx context.Context, b *bulk) ([]string, error) {
	key := b.listKey(b.Next / bulkChunk)
	items, err := e.get(ctx, key)
	if err != nil {
		return nil, err
	}
	if items[0] == nil {
		return nil, fmt.Errorf("%w: %v is missing", errDamaged, key)
	}
	var chunk []string
	if err := decode(items[0], &chunk); err != nil {
		return nil, err
	}
	chunk = chunk[min(b.Next%bulkChunk, len(chunk)):]
	most := bulkBatch
	if b.PerSecond > 0 {
		most = min(most, b.PerSecond)
	}
	return chunk[:min(most, len(chunk))], nil
}

// marksOf returns the indexes of the orders of the batch under way, and of later ones, that were acted on.
func (e *Engine) marksOf(ctx context.Context, b *bulk) (map[int]bool, error) {
	marks := map[int]bool{}
	if b.Order == nil || b.State == BulkDone {
		return marks, nil
	}
	first := b.markKey(b.Next)
	for item, err := range store.All(ctx, e.store, store.Range{Table: store.Work, Partition: first.Partition, From: first.Sort}) {
		if err != nil {
			return nil, journal.Failure("read the progress of an act", err)
		}
		if index, err := strconv.Atoi(item.Key.Sort[1:]); err == nil {
			marks[index] = true
		}
	}
	return marks, nil
}

// actOnEach acts on orders or jobs at once, and returns for each whether that is done; false: it has refused. Of those with an error that
// is not known.
func (e *Engine) actOnEach(ctx context.Context, b *bulk, these []string, marks map[int]bool) (did []bool, errs []error) {
	did, errs = make([]bool, len(these)), make([]error, len(these))
	var group sync.WaitGroup
	for i, name := range these {
		if did[i] = marks[b.Next+i]; did[i] {
			continue
		}
		group.Go(func() {
			if b.Order == nil {
				did[i], errs[i] = e.actOnJob(ctx, b, name)
			} else {
				did[i], errs[i] = e.actOnOne(ctx, b, b.Next+i, name)
			}
		})
	}
	group.Wait()
	return did, errs
}

// actOnOne acts on an order, and leaves a mark in the same write. A mark that is there says that it was done before, which is why the
// order may refuse it now.
func (e *Engine) actOnOne(ctx context.Context, b *bulk, index int, path string) (did bool, err error) {
	mark := b.markKey(index)
	err = e.queue.Change(ctx, []string{path, mark.Partition + mark.Sort}, func(ctx context.Context, lost *store.Conflict) (f queue.Follow, err error) {
		m, err := e.moveOf(ctx, path)
		switch {
		case err != nil:
		case m.order.Created > b.At && !m.order.Permanent:
			err = refuse("it was added later")
		default:
			m.by = b.By
			err = m.act(ctx, *b.Order)
		}
		if err != nil || lost != nil {
			if items, unread := e.get(ctx, mark); unread != nil || items[0] != nil {
				return f, unread
			}
		}
		if err != nil {
			return f, err
		}
		f = m.write()
		f.Ops = append(f.Ops, store.Put(store.Item{Key: mark, Value: []byte("-")}, store.Absent))
		return f, nil
	})
	switch {
	case err == nil:
		return true, nil
	case refused(err):
		return e.marked(ctx, mark)
	}
	return false, err
}

// marked reports whether a mark is there. Race: another process may have acted on the order meanwhile, which refuses the act then; the
// order may be seen before the mark that was written with it, so a write looks for the mark.
func (e *Engine) marked(ctx context.Context, mark store.Key) (bool, error) {
	err := e.put(ctx, "see whether an order was acted on", store.Check(mark, store.Absent))
	if store.AsConflict(err) != nil {
		return true, nil
	}
	return false, err
}

// refused reports whether an error says that an order is not acted on, however often that is tried.
func refused(err error) bool {
	for _, kind := range []error{ErrState, ErrNoOrder, ErrNoNode, ErrNoVersion, ErrNoChain, ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
