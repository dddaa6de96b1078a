package order

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Of a chain with max_orders, so many orders that begin at its first node are under way; the others wait in line, by their creation.
// Who finishes hands its place to the first in line, in the same write.

// places is how many orders of a chain have a place, and how many wait in line for one.
type places struct {
	Taken   int `json:"t"`
	Waiting int `json:"w,omitempty"`

	cond    store.Condition // of the item as it was read
	changed bool
}

func placesKey(chain string) store.Key { return work("places/"+store.Fit(chain), only) }

func linePartition(chain string) string { return "line/" + store.Fit(chain) }

func (o *Order) lineKey() store.Key {
	return work(linePartition(o.Chain), fmt.Sprintf("%016x", o.Created)+store.Fit(o.ID))
}

// counter returns the places of the order's chain, as this write changes them.
func (m *move) counter(ctx context.Context) (*places, error) {
	book := m.book()
	if p := book.places[m.order.Chain]; p != nil {
		return p, nil
	}
	key := placesKey(m.order.Chain)
	items, err := m.e.get(ctx, key)
	if err != nil {
		return nil, err
	}
	p := &places{cond: store.Absent}
	if items[0] != nil {
		p.cond = store.VersionIs(items[0].Version)
		err = decode(items[0], p)
	}
	book.places[m.order.Chain] = p
	m.follow.Names = append(m.follow.Names, key.Partition)
	return p, err
}

// maxOrders returns how many orders of the chain may be under way, as the set in force has it; 0: any number.
func (m *move) maxOrders() int {
	g, err := m.set.Graph(m.order.Chain)
	if err != nil {
		return 0 // it is not declared any more
	}
	return g.MaxOrders
}

// admit gives the order a place if it needs one, and reports whether it goes on: it waits in line where all are taken, and for its
// time, before it takes one.
func (m *move) admit(ctx context.Context) (goesOn bool, err error) {
	o, most := m.order, m.maxOrders()
	if most == 0 || o.Counted || o.Parent != "" || o.First != m.graph.First() {
		return true, nil
	}
	if o.At > m.now {
		m.alarm(o.At)
		return false, nil
	}
	p, err := m.counter(ctx)
	if err != nil {
		return false, err
	}
	p.changed = true
	if p.Taken < most {
		p.Taken++
		o.Counted = true
		return true, nil
	}
	p.Waiting++
	m.wait(typed.ForMaxOrders)
	return false, nil
}

// listInLine puts the order in line, or takes it out, if it was not there before, or is not now.
func (m *move) listInLine() {
	o, waits := m.order, m.order.Waiting == typed.ForMaxOrders
	key, id := o.lineKey(), []byte(o.ID)
	if waits && m.line == key {
		return
	}
	if m.line != (store.Key{}) {
		m.delete(m.line)
	}
	if waits {
		m.list(key, func(journal.Receipt) store.Op { return store.Put(store.Item{Key: key, Value: id}, store.Always) })
	}
}

// inLine returns where the order is in line; empty: nowhere.
func (o *Order) inLine() (key store.Key) {
	if o.Waiting == typed.ForMaxOrders {
		key = o.lineKey()
	}
	return key
}

// stopWaiting ends the order's wait, if it has one.
func (m *move) stopWaiting(ctx context.Context) error {
	o := m.order
	if o.Waiting == typed.ForMaxOrders {
		p, err := m.counter(ctx)
		if err != nil {
			return err
		}
		p.Waiting, p.changed = p.Waiting-1, true
	}
	m.unlist()
	o.Waiting, o.Until = "", 0
	m.leaveFork()
	if err := m.leaveLine(ctx); err != nil {
		return err
	}
	return m.giveBack(ctx)
}

// leave gives back the order's place, to the first in line if there is one.
func (m *move) leave(ctx context.Context) error {
	if err := m.stopWaiting(ctx); err != nil || !m.order.Counted {
		return err
	}
	m.order.Counted = false
	p, err := m.counter(ctx)
	if err != nil {
		return err
	}
	p.Taken, p.changed = p.Taken-1, true
	if p.Waiting == 0 || p.Taken >= max(m.maxOrders(), 1) && m.maxOrders() > 0 {
		return nil
	}
	return m.admitNext(ctx)
}

// lineBatch is how many entries of the line are read for the first order that still waits: more than writes that are under way.
const lineBatch = 10

// admitNext lets the first order in line go on, as a part of this move. It may end at once and hand on its place too: what is too much
// for one write is left to an errand, and so is what cannot be read yet. A damaged order is passed over: it must not keep the step of this
// one from its end.
func (m *move) admitNext(ctx context.Context) error {
	if m.books.full() {
		m.sendToFill(m.now)
		return nil
	}
	page, err := m.e.store.Query(ctx, store.Range{Table: store.Work, Partition: linePartition(m.order.Chain), Limit: lineBatch})
	if err != nil {
		return journal.Failure("read the orders that wait", err)
	}
	p := m.books.places[m.order.Chain]
	for i := range page.Items {
		path := m.order.Chain + "," + string(page.Items[i].Value)
		if m.books.moved[path] {
			continue // it leaves the line with this write
		}
		next, err := m.e.moveOf(ctx, path)
		if errors.Is(err, ErrNoOrder) { // which no write leaves behind
			p.Waiting--
			m.books.moved[path] = true
			absent := store.Check(orderKey(path), store.Absent) // the write that adds it may be under way
			once := store.VersionIs(page.Items[i].Version)      // the write that takes it away may have ended
			m.follow.Ops = append(m.follow.Ops, store.Delete(page.Items[i].Key, once), absent)
			continue
		}
		if m.e.passesOver(path, err) {
			continue
		}
		if err != nil {
			return err
		}
		if next.order.Waiting != typed.ForMaxOrders {
			continue // race: it has just got a place, and its entry can still be read
		}
		m.books.moved[path], next.books = true, m.books
		if err := next.letIn(ctx); err != nil {
			return err
		}
		m.include(next)
		return nil
	}
	if p.Waiting > 0 {
		m.sendToFill(m.now + stateAge.Microseconds())
	}
	return nil
}

// letIn lets an order in line go on. Its time had come when it got in line; a clock that is behind the one by which it had must not
// send it out of the line without a place, which nobody would get then.
func (m *move) letIn(ctx context.Context) error {
	m.now = max(m.now, m.order.At)
	return m.release(ctx)
}

// passesOver reports whether an error says that an order cannot be read, whoever tries, and logs that once.
func (e *Engine) passesOver(path string, err error) bool {
	if !errors.Is(err, errDamaged) && !errors.Is(err, errMissing) {
		return false
	}
	e.skip(orderKey(path), err)
	return true
}

// sendToFill has places of the order's chain filled after the write, at a time.
func (m *move) sendToFill(at int64) {
	key := dueKey(at, m.order.Chain)
	key.Sort += "!" + doFill
	m.books.alarm(at, key, encode(errand{Do: doFill, Order: m.order.Chain}))
}

// fill lets orders in line go on while their chain has places. If none was to go on, unchanged demands that the places are as they were
// read.
func (e *Engine) fill(ctx context.Context, chain string) (unchanged []store.Op, err error) {
	set, err := e.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	return e.fillPlaces(ctx, set, chain)
}

// include lets this move write another order's too.
func (m *move) include(other *move) {
	f := other.own()
	for i := len(m.events) - 1; i >= 0 && len(f.Before) > 0; i-- {
		if m.events[i].Key.Path == m.order.Path() { // this move has brought it about
			f.Before[0].Cause = event.CausedBefore(len(m.events) - i)
			break
		}
	}
	m.events = append(m.events, f.Before...)
	m.follow.Names = append(append(m.follow.Names, other.order.Path()), f.Names...)
	m.follow.Ops = joinedOps(m.follow.Ops, f.Ops)
	m.follow.Stamped = append(m.follow.Stamped, f.Stamped...)
	m.follow.Add = append(m.follow.Add, f.Add...)
	m.follow.Withdraw = append(m.follow.Withdraw, f.Withdraw...)
	m.wakeBy(other.wakeAt)
}
