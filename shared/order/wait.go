package order

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// awaits lets the order wait as its node says. A time that cannot be read, or a variable that is missing, is an error of the node.
func (m *move) awaits(ctx context.Context, n *definition.GraphNode) error {
	if n.Wait.Event != "" {
		return m.awaitEvent(ctx, n)
	}
	until, err := m.timeOf(n.Wait)
	switch {
	case err != nil:
		return m.failHere(ctx)
	case until <= m.now:
		return m.pass(ctx, n)
	}
	m.order.Waiting = typed.ForTime
	m.until(until)
	m.say(event.OrderWaiting, typed.OrderWaiting{NodeID: n.ID, For: typed.ForTime, Until: when(until)})
	return nil
}

// timeOf returns when a wait for a time ends, in microseconds since 1970.
func (m *move) timeOf(w *definition.Wait) (int64, error) {
	if w.Until == "" {
		return m.now + w.For.Microseconds(), nil
	}
	values, err := m.order.values()
	if err != nil {
		return 0, err
	}
	text, err := values.text(w.Until)
	if err != nil {
		return 0, err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("order: %s is no time: %w", strconv.Quote(text), err)
	}
	return at.UnixMicro(), nil
}

// waitAt is where the item lies that lists an order as one that waits for an event.
type waitAt struct {
	Shape  string `json:"s"` // see shape.key
	Values string `json:"v"` // hash of the values that the shape's fields must have
}

// awaited is that item: who waits, and since when.
type awaited struct {
	Path  string   `json:"p"`
	After event.ID `json:"a"`           // the last event of the write by which the order came to wait: only later ones count
	Found event.ID `json:"f,omitempty"` // the event was found, and the order could not go on yet, see found.go; 0: it was not found
}

func waitsPartition(shape string) string { return "waits/" + shape }

func (w waitAt) item(path string) store.Key {
	return work(waitsPartition(w.Shape), w.Values+"/"+store.Fit(path))
}

// awaitEvent lets the order wait for an event: it is listed under what the event must be like, in the write by which it comes.
func (m *move) awaitEvent(ctx context.Context, n *definition.GraphNode) error {
	o, w := m.order, n.Wait
	values, err := o.values()
	if err != nil {
		return err
	}
	s := shapeOf(w)
	hash, err := s.wanted(w, values)
	if err != nil {
		return m.failHere(ctx)
	}
	o.Waiting, o.Await = typed.ForEvent, &waitAt{s.key(), hash}
	if w.Timeout > 0 {
		m.until(m.now + w.Timeout.Microseconds())
	}
	m.say(event.OrderWaiting, typed.OrderWaiting{NodeID: n.ID, For: typed.ForEvent, Name: w.Event, Until: when(o.Until)})
	key, path := o.Await.item(o.Path()), o.Path()
	m.list(key, func(r journal.Receipt) store.Op {
		return store.Put(store.Item{Key: key, Value: encode(awaited{Path: path, After: last(r)})}, store.Always)
	})
	select {
	case m.e.waits.set <- struct{}{}:
	default:
	}
	if err := m.declarePosition(ctx); err != nil {
		return err
	}
	return m.declareShape(ctx, &s)
}

// last returns the id of the last event of a write.
func last(r journal.Receipt) event.ID { return r.FirstID + event.ID(max(r.Count, 1)-1) }

// list sets what the write does to an item that lists orders, or what they wait for; what was said of the item before is void.
func (m *move) list(key store.Key, op queue.Stamp) {
	m.book().lists[key] = op
}

// listedAs demands that an item which the write changes is as it was read. Race: it may be that of a wait before, and the order have come
// to wait there again since the event.
func (m *move) listedAs(item *store.Item) {
	change := m.book().lists[item.Key]
	if change == nil {
		return
	}
	m.list(item.Key, func(r journal.Receipt) store.Op {
		op := change(r)
		op.Cond = store.VersionIs(item.Version)
		return op
	})
}

// unlist takes the order off the list of those that wait for an event.
func (m *move) unlist() {
	if m.order.Await == nil {
		return
	}
	key := m.order.Await.item(m.order.Path())
	m.list(key, func(journal.Receipt) store.Op { return store.Delete(key, store.Always) })
	m.order.Await = nil
}

// happened lets an order go on to the next node that waits for an event with one of some ids, which rise; of others it knows nothing.
func (e *Engine) happened(ctx context.Context, at waitAt, path string, ids []event.ID) error {
	return e.changeIfThere(ctx, path, func(m *move, ctx context.Context) (changed bool, err error) {
		o := m.order
		if o.Waiting != typed.ForEvent || o.Await == nil || *o.Await != at {
			return false, nil
		}
		items, err := e.get(ctx, at.item(path))
		if err != nil || items[0] == nil {
			return false, err
		}
		var since awaited
		if err := decode(items[0], &since); err != nil {
			return false, err
		}
		n, err := m.node()
		if err != nil || ids[len(ids)-1] <= since.After {
			return false, err
		}
		if err := m.leaveFor(ctx, n, n.Next); err != nil {
			return true, err
		}
		m.listedAs(items[0])
		if len(m.events) == 0 {
			return true, nil
		}
		first := slices.IndexFunc(ids, func(id event.ID) bool { return id > since.After })
		m.events[0].Cause = event.CausedBy(ids[first])
		return true, nil
	})
}

// whyWait sets the reason of an order that waits for an event or for a time.
func (o *Order) whyWait(r *Reason, w *definition.Wait) {
	r.Code = ReasonWaiting
	at := when(o.Until).Time
	if o.Until > 0 {
		r.Details["until"] = at
	}
	if o.Waiting == typed.ForTime {
		r.Reason = fmt.Sprintf("It waits at the node %s until %s.", o.Node, at.Format(time.RFC3339))
		return
	}
	r.Details["event"] = w.Event
	r.Reason = fmt.Sprintf("It waits at the node %s for an event %s", o.Node, w.Event)
	if w.Path != "" {
		r.Details["path"] = w.Path
		r.Reason += " of " + w.Path
	}
	if len(w.Where) > 0 {
		r.Details["where"] = o.where(w)
		r.Reason += fmt.Sprintf(" with %s", encode(r.Details["where"]))
	}
	if o.Until > 0 {
		r.Reason += ", at most until " + at.Format(time.RFC3339)
	}
	r.Reason += "."
}
