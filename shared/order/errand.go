package order

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// errand is something that is to be done after the write that it lies in, whoever sees it first: its text is an alarm's value, in
// place of a path. What it says about a fork is only done for the wait that it names.
type errand struct {
	Do    string `json:"do"` // one of the constants below
	Order string `json:"o"`  // path of the order that has forked; of doFill: of the chain
	Run   string `json:"r"`  // of its fork

	OK bool `json:"ok,omitempty"` // of doCount: the child has succeeded

	Node    string `json:"n,omitempty"` // of doEnd: the fork's
	Version int    `json:"v,omitempty"` // of doEnd: of the chain, by which the children were made
	Made    int    `json:"m,omitempty"` // of doEnd: how many
	Before  int    `json:"b,omitempty"` // of doEnd: so many of them, the first ones, were made by earlier writes
	Stop    bool   `json:"s,omitempty"` // of doEnd: their running steps are asked to stop

	key     store.Key // where it lies, once it was read
	version int64
}

const (
	doMake  = "make"  // children of the order
	doCount = "count" // the end of a child
	doEnd   = "end"   // the children of an order that does not wait for them any more
	doFill  = "fill"  // places of the chain that orders in line wait for
)

// send puts an errand about the order with that path, which is due at once.
func (m *move) send(path string, e errand) {
	key := dueKey(m.now, path)
	key.Sort += "!" + e.Do + e.Run
	m.follow.Ops = append(m.follow.Ops, store.Put(store.Item{Key: key, Value: encode(e)}, store.Always))
	m.wakeBy(m.now)
}

// runErrands runs those of some alarms that are errands, and returns the others.
func (r *round) runErrands(ctx context.Context, alarms []store.Item) (others []store.Item) {
	ends, stored := counts{of: map[string][]errand{}}, map[string][]store.Item{}
	for i := range alarms {
		if len(alarms[i].Value) == 0 || alarms[i].Value[0] != '{' {
			others = append(others, alarms[i])
			continue
		}
		do := errand{key: alarms[i].Key, version: alarms[i].Version}
		err := decode(&alarms[i], &do)
		switch {
		case err != nil || r.away:
		case do.Do == doCount:
			ends.add(do)
			stored[do.Order] = append(stored[do.Order], alarms[i])
		default:
			err = r.e.run(ctx, &do)
		}
		r.tried(ctx, err, alarms[i])
	}
	for _, parent := range ends.parents {
		if !r.away {
			r.tried(ctx, r.e.count(ctx, &counts{[]string{parent}, ends.of}), stored[parent]...)
		}
	}
	return others
}

// run does one errand, and takes it away when all is done.
func (e *Engine) run(ctx context.Context, r *errand) (err error) {
	done := true
	var unchanged []store.Op
	switch r.Do {
	case doMake:
		done, err = e.makeChildren(ctx, r)
	case doEnd:
		err = e.endChildren(ctx, r)
	case doFill:
		unchanged, err = e.fill(ctx, r.Order)
	default:
		err = fmt.Errorf("%w: errand %q", errDamaged, r.Do)
	}
	if err != nil || !done {
		return err
	}
	return e.takeAway(ctx, r.key, r.version, unchanged...)
}

// delete takes the errand away, as it was read.
func (r *errand) delete() store.Op { return store.Delete(r.key, store.VersionIs(r.version)) }
