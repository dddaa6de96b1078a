package order

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// An order of a file waits at its end until somebody who has the file has put it away ([Engine.Unfiled], [Engine.MarkFile],
// [Engine.Filed]). So the order's existence tells that the file has been dealt with or is being dealt with, whatever dies when.

// Filing is how far the putting away of an order's file is.
type Filing struct {
	Mark   string `json:"m,omitempty"` // tells which file is put away; empty: that is not known yet
	Failed bool   `json:"f,omitempty"` // it could not be put away once; the order was blacklisted and resumed since
}

// Unfiled is an order at its end whose file is to be put away.
type Unfiled struct {
	Chain, ID string
	Created   int64  // when the order was, in microseconds since 1970: tells it from a later one with its id
	Suspended bool   // the file is to stay
	Mark      string // as [Engine.MarkFile] has it; empty: not called yet
}

const partitionFiles = "orders-files"

func fileKey(path string) store.Key { return work(partitionFiles, store.Fit(path)) }

// awaitFile lets the order wait at its end until its file has been put away. It gives back its place before.
func (m *move) awaitFile(ctx context.Context) error {
	o := m.order
	o.Filing = &Filing{Failed: o.Filing != nil && o.Filing.Failed}
	m.wait(typed.ForFile)
	if err := m.leave(ctx); err != nil {
		return err
	}
	o.Waiting, o.RingsAt = typed.ForFile, 0
	m.follow.Ops = append(m.follow.Ops, store.Put(store.Item{Key: fileKey(o.Path()), Value: []byte(o.Path())}, store.Always))
	return nil
}

// Unfiled returns up to limit orders at their ends whose files are to be put away, behind a place in their list; next is where others
// follow, empty if there are none. After is empty at the beginning. The error is of orders that are left out; those returned are valid.
func (e *Engine) Unfiled(ctx context.Context, after string, limit int) (orders []Unfiled, next string, failed error) {
	r := store.Range{Table: store.Work, Partition: partitionFiles, Limit: limit}
	page, err := e.store.Query(ctx, r.Behind(after))
	if err != nil {
		return nil, "", journal.Failure("read the orders whose files are to be put away", err)
	}
	for i := range page.Items {
		hint := &page.Items[i]
		o, cond, err := e.read(ctx, string(hint.Value))
		switch {
		case errors.Is(err, ErrNoOrder), err == nil && o.Waiting != typed.ForFile:
			err = e.takeAway(ctx, hint.Key, hint.Version, store.Check(orderKey(string(hint.Value)), cond))
		case err == nil:
			orders = append(orders, Unfiled{Chain: o.Chain, ID: o.ID, Created: o.Created, Suspended: o.Suspended, Mark: o.Filing.Mark})
		}
		failed = errors.Join(failed, err)
	}
	if page.More && len(page.Items) > 0 {
		next = page.Items[len(page.Items)-1].Key.Sort
	}
	return orders, next, failed
}

// MarkFile notes which file is put away, before it is touched: whoever goes on after a crash knows by it whether the file at the
// path is still that one. It returns the mark that counts, which is the first; empty if the order does not wait for its file.
func (e *Engine) MarkFile(ctx context.Context, u Unfiled, mark string) (counts string, err error) {
	err = e.changeIfThere(ctx, u.Chain+","+u.ID, func(m *move, _ context.Context) (changed bool, err error) {
		o := m.order
		switch counts = ""; {
		case o.Waiting != typed.ForFile || o.Suspended || o.Created != u.Created:
			return false, nil
		case o.Filing.Mark == "":
			o.Filing.Mark, changed = mark, true
		}
		counts = o.Filing.Mark
		return changed, nil
	})
	return counts, err
}

// FileMark returns what MarkFile has noted of an order, and whether the order waits at its end for its file. The error is [ErrNoOrder] if
// there is none.
func (e *Engine) FileMark(ctx context.Context, chain, id string) (mark string, waits bool, err error) {
	o, _, err := e.read(ctx, chain+","+id)
	if err != nil || o.Waiting != typed.ForFile {
		return "", false, err
	}
	return o.Filing.Mark, true, nil
}

// Filed ends an order whose file has been put away, or is gone. Where it could not be put away, the order is blacklisted the first
// time, and finishes all the same when that happens after somebody has resumed it; finished says so. An order that does not wait for
// its file stays as it is.
func (e *Engine) Filed(ctx context.Context, u Unfiled, away bool) (finished bool, err error) {
	err = e.changeIfThere(ctx, u.Chain+","+u.ID, func(m *move, ctx context.Context) (changed bool, err error) {
		o := m.order
		if finished = false; o.Waiting != typed.ForFile || o.Created != u.Created {
			return false, nil
		}
		m.follow.Ops = append(m.follow.Ops, store.Delete(fileKey(o.Path()), store.Always))
		if !away && !o.Filing.Failed && !o.Suspended {
			o.Waiting, o.Filing = "", &Filing{Failed: true}
			m.blacklist()
			return true, nil
		}
		m.filed = true
		err = m.finish(ctx)
		finished = m.gone
		return true, err
	})
	return finished, err
}
