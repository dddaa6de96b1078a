package order

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// joined returns what two moves of different orders write, as one write.
func joined(a, b queue.Follow) queue.Follow {
	return queue.Follow{
		Names: append(a.Names, b.Names...), Before: append(a.Before, b.Before...), After: append(a.After, b.After...),
		Ops: joinedOps(a.Ops, b.Ops), Withdraw: append(a.Withdraw, b.Withdraw...), Add: append(a.Add, b.Add...),
		Written: func(ctx context.Context) {
			for _, f := range []func(context.Context){a.Written, b.Written} {
				if f != nil {
					f(ctx)
				}
			}
		},
	}
}

// joinedOps appends operations to others. Two orders may rest on the same item, such as their chain's: it is checked once.
func joinedOps(all, more []store.Op) []store.Op {
	for _, op := range more {
		same := func(known store.Op) bool { return known.Kind == store.OpCheck && known.Item.Key == op.Item.Key }
		if op.Kind != store.OpCheck || !slices.ContainsFunc(all, same) {
			all = append(all, op)
		}
	}
	return all
}

// load is about how much a write holds.
type load struct{ ops, bytes int }

// What tasks take of a write at most, and what is left for the order that several others belong to.
const (
	opsAdded    = 3
	opsWithdraw = 4
	reserveOps  = 16
)

// add adds what a move writes.
func (l *load) add(f queue.Follow) {
	l.ops += len(f.Ops) + opsAdded*len(f.Add) + opsWithdraw*len(f.Withdraw)
	for i := range f.Ops {
		l.bytes += len(f.Ops[i].Item.Value)
	}
	for i := range f.Add {
		l.bytes += 2 * len(f.Add[i].Payload)
	}
	for i := range f.Before {
		l.bytes += len(f.Before[i].Fields)
	}
}

func (l *load) tooLarge() bool { return l.ops > queue.MaxChange || l.bytes > childrenBytes }
