package order

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// carryOn does what is left of an act on many, or a part of it: then it sets an alarm. One that another process does is left to it,
// with an alarm for when that would have ended.
func (e *Engine) carryOn(ctx context.Context, id string) error {
	for began := e.micro(); ; {
		b, err := e.bulkOf(ctx, id)
		if errors.Is(err, ErrNoBulk) {
			return journal.Failure("remove an act", e.store.Remove(ctx, store.Range{Table: store.Work, Partition: bulkPartition(id)}))
		}
		if err != nil {
			return err
		}
		now := e.micro()
		switch {
		case b.State == BulkDone || b.State == "":
			return e.forget(ctx, b)
		case b.State == BulkStopped:
			return nil
		case b.Owner != e.name && b.Until > now:
			return e.callAgain(ctx, b, b.Until)
		case now-began > bulkSlice.Microseconds():
			return e.callAgain(ctx, b, now)
		}
		if err := e.batch(ctx, id); err != nil {
			return err
		}
	}
}

// callAgain sets an alarm for an act.
func (e *Engine) callAgain(ctx context.Context, b *bulk, at int64) error {
	e.alarms.at(at)
	return e.put(ctx, "set an alarm", b.alarm(at))
}

// forget removes an act that was done long ago, or that was never complete.
func (e *Engine) forget(ctx context.Context, b *bulk) error {
	due := b.Until + bulkKept.Microseconds() // when it was done
	if b.State == "" {
		due = b.At + bulkMade.Microseconds()
	}
	if due > e.micro() {
		return nil // by another alarm
	}
	err := e.store.Write(ctx, store.Write{Token: e.token(), Ops: []store.Op{store.Delete(bulkKey(b.ID), store.VersionIs(b.version))}})
	if store.AsConflict(err) != nil {
		return nil // it has become complete
	}
	if err == nil {
		err = e.store.Remove(ctx, store.Range{Table: store.Work, Partition: bulkPartition(b.ID)})
	}
	return journal.Failure("remove an act", err)
}

// batch acts on the next of what an act selects, and notes the progress. Race: another process may do the same, or somebody stops the
// act: each order's mark is written once, with the order, and the progress only by who has read it as it is.
func (e *Engine) batch(ctx context.Context, id string) error {
	e.acting <- struct{}{}
	defer func() { <-e.acting }()
	b, err := e.bulkOf(ctx, id)
	if err != nil || b.State != BulkRunning {
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
	did, err := e.actOnEach(journal.WithActor(ctx, b.By), b, these, marks)
	if err != nil {
		return err
	}
	for i := range these {
		if did[i] {
			b.Done++
		} else {
			b.Failed++
		}
	}
	return e.note(ctx, b, len(these))
}

// note writes the progress of an act after a batch. The batch's marks stay as long as the act: another process may still be at the same
// batch.
func (e *Engine) note(ctx context.Context, b *bulk, size int) error {
	now := e.micro()
	b.Next += size
	b.Owner, b.Until = e.name, now+bulkLease.Microseconds()
	var ops []store.Op
	if b.Next >= b.Count {
		b.State, b.Until = BulkDone, now
		ops = append(ops, b.alarm(now+bulkKept.Microseconds()))
	}
	ops = append(ops, b.put())
	err := e.store.Write(ctx, store.Write{Token: e.token(), Ops: ops})
	if store.AsConflict(err) != nil {
		return nil // it is read anew
	}
	return journal.Failure("note the progress of an act", err)
}

// nextOf returns the next of what an act selects.
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
	return chunk[:min(bulkBatch, len(chunk))], nil
}

// marksOf returns the indexes of the orders of the batch under way that were acted on.
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

// actOnEach acts on orders or jobs at once, and returns for each whether that is done; false: it has refused. After an error it is not
// known of some.
func (e *Engine) actOnEach(ctx context.Context, b *bulk, these []string, marks map[int]bool) (did []bool, err error) {
	did = make([]bool, len(these))
	errs := make([]error, len(these))
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
	return did, errors.Join(errs...)
}

// actOnOne acts on an order, and leaves a mark in the same write. A mark that is there says that it was done before.
func (e *Engine) actOnOne(ctx context.Context, b *bulk, index int, path string) (did bool, err error) {
	mark := b.markKey(index)
	err = e.queue.Change(ctx, []string{path, mark.Partition + mark.Sort}, func(ctx context.Context, lost *store.Conflict) (queue.Follow, error) {
		if lost != nil {
			if items, err := e.get(ctx, mark); err != nil || items[0] != nil {
				return queue.Follow{}, err
			}
		}
		m, err := e.moveOf(ctx, path)
		if err != nil {
			return queue.Follow{}, err
		}
		if m.order.Created > b.At && !m.order.Permanent {
			return queue.Follow{}, refuse("it was added later")
		}
		if err := m.act(ctx, *b.Order); err != nil {
			return queue.Follow{}, err
		}
		f := m.write()
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
