package meter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// Meter is a store that passes each call on to another and prices it.
type Meter struct {
	inner store.Store

	mu    sync.Mutex
	usage Usage
}

var _ store.Store = (*Meter)(nil)

// New returns a Meter in front of inner. Closing it closes inner.
func New(inner store.Store) *Meter { return &Meter{inner: inner} }

// Usage returns what the calls that ended since New or Reset cost.
func (m *Meter) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage
}

// Reset sets the usage to zero and returns what it was.
func (m *Meter) Reset() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	usage := m.usage
	m.usage = Usage{}
	return usage
}

// count adds a call to the costs of its method.
func (m *Meter) count(method *Cost, wcu int, rcu float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*method = method.Plus(Cost{Calls: 1, WCU: wcu, RCU: rcu})
}

// free reports whether a call that ended with this error had no price: it was not sent, or was refused.
func free(err error) bool {
	for _, unsent := range []error{
		store.ErrBusy, store.ErrUnavailable, store.ErrTooLate, store.ErrInvalid, store.ErrClosed,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, unsent) {
			return true
		}
	}
	return false
}

// Get is priced item by item; a key that is asked for twice is read once.
func (m *Meter) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := m.inner.Get(ctx, keys...)
	rcu := 0.0
	if err == nil {
		seen := make(map[store.Key]bool, len(keys))
		for i, key := range keys {
			if !seen[key] {
				seen[key] = true
				rcu += strong(items[i])
			}
		}
	}
	m.count(&m.usage.Get, 0, rcu)
	return items, err
}

// Query is priced by the sum of the items returned.
func (m *Meter) Query(ctx context.Context, r store.Range) (store.Page, error) {
	answer, err := m.inner.Query(ctx, r)
	rcu := 0.0
	if err == nil && !crossed(r) {
		rcu = scan(answer.Items, r.Eventual)
	}
	m.count(&m.usage.Query, 0, rcu)
	return answer, err
}

// crossed reports whether the ends of a range leave nothing between them, so that no request is sent.
func crossed(r store.Range) bool { return r.To != "" && r.From >= r.To }

// Write is priced by the items that it puts and those it replaces or deletes. An unknown outcome is priced as if it had been
// applied.
func (m *Meter) Write(ctx context.Context, w store.Write) error {
	before := m.before(ctx, w)
	err := m.inner.Write(ctx, w)
	wcu, rcu := 0, 0.0
	if !free(err) {
		if conflict := store.AsConflict(err); conflict != nil {
			for _, failure := range conflict.Failed {
				before[failure.Op] = failure.Found
			}
		}
		wcu, rcu = write(w, before)
	}
	m.count(&m.usage.Write, wcu, rcu)
	return err
}

// before reads the items that a Write's operations may replace, delete or check; nil elsewhere.
func (m *Meter) before(ctx context.Context, w store.Write) []*store.Item {
	before := make([]*store.Item, len(w.Ops))
	var keys []store.Key
	var ops []int
	for i, op := range w.Ops {
		if op.Kind == store.OpPut && op.Cond.IsAbsent() {
			continue // there is no item, or the conflict holds it
		}
		keys, ops = append(keys, op.Item.Key), append(ops, i)
	}
	if len(keys) == 0 {
		return before
	}
	items, err := m.inner.Get(ctx, keys...)
	if err != nil {
		return before
	}
	for i, op := range ops {
		before[op] = items[i]
	}
	return before
}

// Remove is priced as a strong Query of what it finds and a deletion of each item.
func (m *Meter) Remove(ctx context.Context, r store.Range) error {
	found, lookErr := m.all(ctx, r)
	err := m.inner.Remove(ctx, r)
	wcu, rcu := 0, 0.0
	if err == nil && lookErr == nil && !crossed(r) {
		rcu = scan(found, false)
		for _, item := range found {
			wcu += units(layout.Size(item), writeUnit)
		}
	}
	m.count(&m.usage.Remove, wcu, rcu)
	return err
}

// all reads every item of a range.
func (m *Meter) all(ctx context.Context, r store.Range) ([]store.Item, error) {
	r.Backward, r.Limit, r.Eventual = false, 0, false
	var items []store.Item
	for {
		answer, err := m.inner.Query(ctx, r)
		if err != nil {
			return nil, err
		}
		items = append(items, answer.Items...)
		if !answer.More || len(answer.Items) == 0 {
			return items, nil
		}
		r.From = items[len(items)-1].Key.Sort + "\x00"
	}
}

// Reserve is priced by the ticket's Sends.
func (m *Meter) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	ticket, err := m.inner.Reserve(ctx, key, ids, now)
	wcu := 0
	switch {
	case err == nil:
		wcu = ticket.Sends * units(layout.SequencerSize(key, ticket.Sequence), writeUnit)
	case !free(err):
		wcu = 1
	}
	m.count(&m.usage.Reserve, wcu, 0)
	return ticket, err
}

// Sequence is priced as a get of one item.
func (m *Meter) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	state, err := m.inner.Sequence(ctx, key, eventual)
	rcu := 0.0
	if err == nil {
		rcu = float64(units(layout.SequencerSize(key, state), readUnit))
	}
	if eventual {
		rcu /= 2
	}
	m.count(&m.usage.Sequence, 0, rcu)
	return state, err
}

// Raise is priced as a write, whether the floor moves or not.
func (m *Meter) Raise(ctx context.Context, key store.Key, position, id int64) error {
	err := m.inner.Raise(ctx, key, position, id)
	wcu := 0
	if !free(err) {
		floor := store.Sequence{FloorPosition: position, FloorID: id, Position: position, LastID: id}
		wcu = units(layout.SequencerSize(key, floor), writeUnit)
	}
	m.count(&m.usage.Raise, wcu, 0)
	return err
}

// Date is priced as the eventual get of nothing.
func (m *Meter) Date(ctx context.Context) (time.Time, error) {
	date, err := m.inner.Date(ctx)
	m.count(&m.usage.Date, 0, priceIf(err, 0.5))
	return date, err
}

// Ping is priced as an eventual get of nothing from each of the three tables.
func (m *Meter) Ping(ctx context.Context) error {
	err := m.inner.Ping(ctx)
	m.count(&m.usage.Ping, 0, priceIf(err, 1.5))
	return err
}

func priceIf(err error, rcu float64) float64 {
	if err != nil {
		return 0
	}
	return rcu
}

// Exclusive returns that of the store behind.
func (m *Meter) Exclusive() bool { return m.inner.Exclusive() }

// Advances returns what the store behind it does.
func (m *Meter) Advances() bool { return m.inner.Advances() }

// MaxOps returns what the store behind it does.
func (m *Meter) MaxOps() int { return m.inner.MaxOps() }

// Close closes the store behind.
func (m *Meter) Close() error { return m.inner.Close() }
