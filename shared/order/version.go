package order

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// versions caches versions of chains: each is immutable, and which is the newest changes with the first order of the next.
type versions struct {
	graphs cache[*definition.Graph] // by chain and number
	newest cache[version]           // by chain
}

// newestAge is how old the knowledge may be that a declared graph is its chain's newest version. It is far less than tidyPause: a process
// that had heard of newer definitions later than this one may have brought about the next version, and this one may be removed then.
const newestAge = 5 * time.Minute

// errMissing is the error for a version that an order is on and that cannot be read: the write by which it came is not visible as a whole
// yet, or the version is lost.
var errMissing = errors.New("order: a version cannot be read yet")

// version is a version of a chain: its number, from 1, and its graph as one set of definitions has it. Another set, though it declares the
// same, may come after one that has brought about the next version.
type version struct {
	number int
	of     *definition.Graph
}

// graph returns a version of a chain.
func (e *Engine) graph(ctx context.Context, chain string, number int) (*definition.Graph, error) {
	name := versionName(chain, number)
	if known, ok := e.versions.graphs.get(name); ok {
		return known.value, nil
	}
	items, err := e.get(ctx, versionKey(chain, number))
	if err != nil {
		return nil, err
	}
	if items[0] == nil {
		return nil, fmt.Errorf("%w: %w: version %d of the job chain %s", journal.ErrUnavailable, errMissing, number, chain)
	}
	g, err := definition.ReadGraph(items[0].Value)
	if err != nil {
		return nil, fmt.Errorf("%w: version %d of the job chain %s: %w", errDamaged, number, chain, err)
	}
	e.versions.graphs.put(name, g, 0)
	return g, nil
}

// declared returns the set in force and a chain of it. The error is [ErrNoChain] if it is not declared.
func (e *Engine) declared(ctx context.Context, chain string) (*definition.Set, *definition.Graph, error) {
	set, err := e.definitions.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	g, err := set.Graph(chain)
	if errors.Is(err, definition.ErrNoChain) { // perhaps it has just been declared
		if set, err = e.definitions.Refresh(ctx); err != nil {
			return nil, nil, err
		}
		g, err = set.Graph(chain)
	}
	if errors.Is(err, definition.ErrNoChain) {
		err = fmt.Errorf("%w: %s", ErrNoChain, chain)
	}
	return set, g, err
}

// versionOf returns the number of the version that a graph is, for a new order. If it is a new version, ops are to be written with
// the order. Race: two processes may both find that a version is new; one of them conflicts, and reads again.
func (e *Engine) versionOf(ctx context.Context, g *definition.Graph, again bool) (number int, ops []store.Op, err error) {
	now := e.micro()
	if known, ok := e.versions.newest.get(g.Chain); ok && !again && known.value.of == g && known.within(newestAge, now) {
		return known.value.number, nil, nil
	}
	newest, err := e.newest(ctx, g.Chain)
	if err != nil {
		return 0, nil, err
	}
	if newest != nil {
		if number, err = numberOf(newest); err != nil {
			return 0, nil, err
		}
		known, err := definition.ReadGraph(newest.Value)
		if err != nil {
			return 0, nil, err
		}
		if known.Hash() == g.Hash() {
			e.versions.newest.put(g.Chain, version{number, g}, now)
			return number, nil, nil
		}
	}
	number++
	ops = []store.Op{store.Put(store.Item{Key: versionKey(g.Chain, number), Value: g.JSON()}, store.Absent)}
	if number > 1 {
		ops = append(ops, e.tidyLater(g.Chain))
	}
	return number, ops, nil
}

// newest returns the item of a chain's newest version, nil if it has none.
func (e *Engine) newest(ctx context.Context, chain string) (*store.Item, error) {
	page, err := e.store.Query(ctx, store.Range{Table: store.Work, Partition: versionPartition(chain), Backward: true, Limit: 1})
	if err != nil {
		return nil, journal.Failure("read the versions of a job chain", err)
	}
	if len(page.Items) == 0 {
		return nil, nil
	}
	return &page.Items[0], nil
}

// nodesOf returns the node with that id of a chain as it is declared, and of its versions that orders may still be on, as far as they
// can be read. For the id of a nested chain that is the node with which this begins, in the newest version that has it.
func (e *Engine) nodesOf(ctx context.Context, declared *definition.Graph, id string) (nodes []*definition.GraphNode, err error) {
	graphs := []*definition.Graph{declared}
	versions := store.Range{Table: store.Work, Partition: versionPartition(declared.Chain), Backward: true}
	for item, err := range store.All(ctx, e.store, versions) {
		if err != nil {
			return nil, journal.Failure("read the versions of a job chain", err)
		}
		if g, err := definition.ReadGraph(item.Value); err == nil {
			graphs = append(graphs, g)
		}
	}
	for _, g := range graphs {
		if n, ok := g.Node(id); ok {
			nodes, id = append(nodes, n), n.ID
		}
	}
	return nodes, nil
}
