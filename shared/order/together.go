package order

import (
	"bytes"
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
		Stamped: append(a.Stamped, b.Stamped...),
		Written: func(ctx context.Context) {
			for _, f := range []func(context.Context){a.Written, b.Written} {
				if f != nil {
					f(ctx)
				}
			}
		},
	}
}

// joinedOps appends operations to others. Two orders may rest on the same item, such as their chain's, or both add their chain's new
// version: what is written, or was checked, is not checked again, what was checked may be written, and the same is written once.
func joinedOps(all, more []store.Op) []store.Op {
	for _, op := range more {
		i := slices.IndexFunc(all, func(known store.Op) bool { return known.Item.Key == op.Item.Key })
		switch {
		case i < 0:
			all = append(all, op)
		case op.Kind == store.OpCheck, all[i].Kind == op.Kind && bytes.Equal(all[i].Item.Value, op.Item.Value):
		case all[i].Kind == store.OpCheck:
			if op.Cond.IsAlways() {
				op.Cond = all[i].Cond
			}
			all[i] = op
		default:
			all = append(all, op) // the store refuses it, and tells where
		}
	}
	return all
}

// group is one write of the moves of several orders, as many as it holds.
type group struct {
	book   *book
	follow queue.Follow // without what is in the book
	orders int
	load   load
}

// newGroup returns the group of a move, which is written with what the group has.
func (m *move) newGroup() *group { return &group{book: m.book(), load: load{ops: reserveOps}} }

// add adds the write of one more order, and reports whether it fits: the first one does. An order that another one in the group has
// moved does not. Move is to return what a move that has the group's book writes, without the book.
func (g *group) add(path string, move func(*book) (queue.Follow, error)) (fits bool, err error) {
	if g.book.moved[path] {
		return false, nil
	}
	before := g.book.clone()
	g.book.moved[path] = true
	part, err := move(g.book)
	if err != nil {
		return false, err
	}
	if g.load.add(part); g.orders > 0 && g.load.with(g.book).tooLarge() {
		*g.book = *before
		return false, nil
	}
	g.follow = joined(g.follow, part)
	g.orders++
	return true, nil
}

// load is about how much a write holds.
type load struct{ ops, bytes int }

// What tasks take of a write at most, and what is left for the order that several others belong to: it may go on, and take locks.
const (
	opsAdded    = 3
	opsWithdraw = 4
	reserveOps  = 26
)

// add adds what a move writes.
func (l *load) add(f queue.Follow) {
	l.ops += len(f.Ops) + len(f.Stamped) + opsAdded*len(f.Add) + opsWithdraw*len(f.Withdraw)
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

// with returns the load together with that of a book.
func (l load) with(b *book) load { return load{l.ops + b.size(), l.bytes} }

func (l load) tooLarge() bool { return l.ops > queue.MaxChange || l.bytes > childrenBytes }
