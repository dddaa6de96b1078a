package order

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// mending is where the last look for what is left behind has ended. Every write leaves a right state, so there should be nothing;
// but definitions change, and whoever removes a step's task by other ways leaves its order behind.
type mending struct {
	mu    sync.Mutex
	last  int64  // when it was, microseconds since 1970
	chain int    // index of the chain among those that are declared
	id    string // of the order after which it goes on
}

const (
	mendEvery = time.Minute
	mendBatch = 100              // orders of one look
	fillFor   = 10 * time.Second // how long one call lets orders in; the next goes on
)

// mend looks for what is left behind, once in mendEvery: orders that wait though there is a place, and some orders whose step's task
// is gone.
func (e *Engine) mend(ctx context.Context) error {
	m := &e.mending
	if !m.mu.TryLock() {
		return nil // another call is looking, and nobody waits for its reads and writes
	}
	defer m.mu.Unlock()
	now := e.micro()
	if now-m.last < mendEvery.Microseconds() && m.last <= now {
		return nil
	}
	m.last = now
	set, err := e.definitions.Current(ctx)
	if err != nil || len(set.JobChains) == 0 {
		return err
	}
	var failed error
	for i := range set.JobChains {
		_, err := e.fillPlaces(ctx, set, set.JobChains[i].Path)
		failed = errors.Join(failed, err)
	}
	if m.chain %= len(set.JobChains); m.chain < 0 {
		m.chain = 0
	}
	return errors.Join(failed, e.mendSome(ctx, set.JobChains[m.chain].Path))
}

// mendSome looks at the next orders of a chain. One that cannot be mended does not keep it from the others.
func (e *Engine) mendSome(ctx context.Context, chain string) (failed error) {
	m := &e.mending
	r := store.Range{Table: store.Work, Partition: listPartition(chain), Limit: mendBatch, Eventual: true}
	page, err := e.store.Query(ctx, r.Behind(m.id))
	if err != nil {
		return journal.Failure("read the orders of a job chain", err)
	}
	for i := range page.Items {
		m.id = page.Items[i].Key.Sort
		path := chain + "," + string(page.Items[i].Value)
		if err := e.mendOrder(ctx, path); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", path, err))
			if e.away(ctx, err) {
				return failed
			}
		}
	}
	if !page.More {
		m.chain, m.id = m.chain+1, ""
	}
	return failed
}

// mendOrder ends the step of an order whose task is gone, as an error.
func (e *Engine) mendOrder(ctx context.Context, path string) error {
	o, _, err := e.read(ctx, path)
	if errors.Is(err, ErrNoOrder) {
		return nil
	}
	if err != nil || o.Task == "" {
		return err
	}
	if _, state, err := e.stepOf(ctx, o); state != stepGone || err != nil {
		return err
	}
	return e.changeIfThere(ctx, path, func(m *move, ctx context.Context) (changed bool, err error) {
		o := m.order
		if o.Task == "" {
			return false, nil
		}
		stored, state, err := m.e.stepOf(ctx, o)
		if state != stepGone || err != nil {
			return false, err
		}
		if stored.Absent {
			m.follow.Withdraw = append(m.follow.Withdraw, stored)
		}
		gone := &task.Task{ID: o.Task, State: task.Dropped, Order: &task.Order{Chain: o.Chain, ID: o.ID, Node: o.Node}}
		return true, m.stepEnded(ctx, gone, queue.Result{Outcome: typed.Dropped})
	})
}

// fillPlaces lets orders in line go on while there are places, as there are after max_orders was raised. One that cannot go on does not
// keep those behind it. If none was to go on, unchanged demands that the places are as they were read.
func (e *Engine) fillPlaces(ctx context.Context, set *definition.Set, chain string) (unchanged []store.Op, failed error) {
	g, err := set.Graph(chain)
	if err != nil {
		return nil, nil //nolint:nilerr // nothing can be done for a chain that cannot be compiled
	}
	free, cond, err := e.freePlace(ctx, g)
	unchanged = []store.Op{store.Check(placesKey(chain), cond)}
	if !free || err != nil {
		return unchanged, err
	}
	r := store.Range{Table: store.Work, Partition: linePartition(chain), Limit: mendBatch}
	for end := e.micro() + fillFor.Microseconds(); e.micro() < end; {
		page, err := e.store.Query(ctx, r)
		if err != nil {
			return nil, errors.Join(failed, journal.Failure("read the orders that wait", err))
		}
		let, goesOn, err := e.letInSome(ctx, g, page.Items)
		if failed = errors.Join(failed, err); let {
			unchanged = nil
		}
		if !goesOn || !page.More {
			break
		}
		r = r.Behind(page.Items[len(page.Items)-1].Key.Sort)
	}
	return unchanged, failed
}

// letInSome lets orders in line go on while there are places. It reports whether one was let in, and whether those behind may be.
func (e *Engine) letInSome(ctx context.Context, g *definition.Graph, line []store.Item) (let, goesOn bool, failed error) {
	for i := range line {
		if free, _, err := e.freePlace(ctx, g); !free || err != nil {
			return let, false, errors.Join(failed, err)
		}
		path := g.Chain + "," + string(line[i].Value)
		err := e.changeIfThere(ctx, path, func(m *move, ctx context.Context) (changed bool, err error) {
			if m.order.Waiting != typed.ForMaxOrders {
				return false, nil
			}
			let = true
			return true, m.letIn(ctx)
		})
		if !e.passesOver(path, err) {
			failed = errors.Join(failed, err)
		}
		if e.away(ctx, err) {
			return let, false, failed
		}
	}
	return let, true, failed
}

// freePlace reports whether an order waits for a place of a chain, and there is one, and returns the condition that the places are as they
// were read.
func (e *Engine) freePlace(ctx context.Context, g *definition.Graph) (free bool, cond store.Condition, err error) {
	items, err := e.get(ctx, placesKey(g.Chain))
	if err != nil || items[0] == nil {
		return false, store.Absent, err
	}
	var p places
	if err := decode(items[0], &p); err != nil {
		return false, store.Absent, err
	}
	return p.Waiting > 0 && (g.MaxOrders == 0 || p.Taken < g.MaxOrders), store.VersionIs(items[0].Version), nil
}
