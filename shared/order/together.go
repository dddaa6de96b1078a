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

// writeWithoutBook returns what the move writes, but for the book, which is the group's.
func (m *move) writeWithoutBook() queue.Follow {
	m.books = nil
	return m.write()
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
