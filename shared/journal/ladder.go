package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/millrace/millrace/shared/store"
)

// The ladder is all generations that are kept: the newest, and those whose place was taken, for as long as something above
// the floor can be told from them only. Each stands for as many moments as it has changes: from Exact on, the base with the
// changes up to one of them is the state as of the position of that one. So the state at any id above the floor is that of
// the nearest of those moments below it, and a fold of the few slots between.

// rungPrefix begins the sort keys of generations whose place was taken.
const rungPrefix = "rung#"

func (j *Journal) rungKey(n int64) store.Key {
	return store.Key{Table: store.Journal, Partition: j.keys.generations(), Sort: rungPrefix + positionSort(n)}
}

// rungItem returns the item that keeps the nth generation whose place was taken.
func (j *Journal) rungItem(g *generation, n int64) (store.Item, error) {
	kept := *g
	kept.Ledger.marks = nil // retention reads those of the newest
	value, err := json.Marshal(kept)
	return store.Item{Key: j.rungKey(n), Version: 1, Value: value}, err
}

// ladder is the generations that are kept, the oldest first, the newest complete one last.
type ladder struct {
	rungs []rung
	next  *building
}

// rung is one of them.
type rung struct {
	generation
	key store.Key // of the item that keeps it; the newest has none
}

// ladder reads the generations that are kept. The manifest is read first, and of the others those whose place was taken by then:
// so each is met once, also if its place is taken meanwhile.
func (j *Journal) ladder(ctx context.Context) (l ladder, err error) {
	m, _, err := j.manifest(ctx)
	if err != nil {
		return l, err
	}
	r := store.Range{Table: store.Journal, Partition: j.keys.generations(), From: rungPrefix, To: j.rungKey(m.Retired + 1).Sort}
	for item, err := range store.All(ctx, j.store, r) {
		if err != nil {
			return l, j.unavailable("read older generations", err)
		}
		older := rung{key: item.Key}
		if err := json.Unmarshal(item.Value, &older.generation); err != nil {
			return l, fmt.Errorf("%w: generation %s: %w", ErrDamaged, item.Key.Sort, err)
		}
		l.rungs = append(l.rungs, older)
	}
	if m.Newest != nil {
		l.rungs = append(l.rungs, rung{generation: *m.Newest})
	}
	l.next = m.Next
	return l, nil
}

// moment is a state that a generation tells: its base with some of its changes.
type moment struct {
	position int64
	folds    []string
	layers   []layer // in order
}

// cost returns how many events could be folded in the time that it takes to read the moment, about.
func (m *moment) cost() int64 {
	const each = 64 // bytes of a record, which is not read sooner than an event is folded
	return sizeOf(m.layers) / each
}

// below returns the newest moment at or below a position that a generation with a fold tells; ok is false if there is none. An
// empty fold means any.
func (l *ladder) below(position int64, fold string) (newest moment, ok bool) {
	for i := range l.rungs {
		g := &l.rungs[i].generation
		if fold != "" && !slices.Contains(g.Folds, fold) {
			continue
		}
		if m, there := g.below(position); there && (!ok || m.position >= newest.position) {
			newest, ok = m, true
		}
	}
	return newest, ok
}

// below returns the newest moment at or below a position.
func (g *generation) below(position int64) (m moment, ok bool) {
	for n := len(g.Changes); n > 0 && g.tells(&g.Changes[n-1]); n-- {
		if at := g.Changes[n-1].As.Position; at <= position {
			return moment{at, g.Folds, slices.Concat(g.Base, g.Changes[:n])}, true
		}
	}
	return m, false
}

// tells reports whether a generation is exact with the changes up to some. As older versions have left it, it is not known to be.
func (g *generation) tells(changes *layer) bool {
	return changes.As != nil && g.Exact > 0 && changes.As.Position >= g.Exact
}

// complete notes from which moment on the changes reach every layer of the base, which is one of those that the generation tells.
func (b *building) complete() {
	b.Exact = b.Until
	if n := len(b.Changes); n == 0 || b.Changes[n-1].As == nil || b.Changes[n-1].As.Position < b.Ledger.position {
		b.Changes = append(b.Changes, told(nil, &b.Ledger)...)
	}
}

// told returns the layers of changes with what had been folded when they were stored. If nothing has changed, it is a layer without
// records.
func told(changes []layer, l *ledger) []layer {
	if len(changes) == 0 {
		changes = []layer{{ID: positionSort(l.position)}}
	}
	for i := range changes {
		changes[i].As = &mark{l.position, l.events, l.last}
	}
	return changes
}

// dropOlder removes generations from the ladder that nothing at or above the floor needs: a newer one reaches the floor.
// Rule (ladder): the newest moment at or below the floor stays.
func (j *Journal) dropOlder(ctx context.Context, l *ladder) error {
	seq, err := j.sequence(ctx)
	if err != nil {
		return err
	}
	for len(l.rungs) > 1 {
		rest := ladder{rungs: l.rungs[1:]}
		if _, reaches := rest.below(seq.FloorPosition, ""); !reaches {
			return nil
		}
		if err := j.delete(ctx, l.rungs[0].key, j.token()); err != nil {
			return err
		}
		l.rungs = rest.rungs
	}
	return nil
}

// layers returns the sort keys under which the layers of all generations are registered.
func (l *ladder) layers() map[string]bool {
	needed := map[string]bool{}
	add := func(g *generation) {
		for _, l := range slices.Concat(g.Base, g.Changes) {
			needed[layerPrefix+l.ID] = true
		}
	}
	for i := range l.rungs {
		add(&l.rungs[i].generation)
	}
	if l.next != nil {
		add(&l.next.generation)
	}
	return needed
}

// foot returns the position from which on slots are kept, so that the state at the floor can be told: that of the newest moment at
// or below it. 0: there is none, and nothing may be removed.
func (j *Journal) foot(ctx context.Context, floor int64) (int64, error) {
	l, err := j.ladder(ctx)
	if err != nil {
		return 0, err
	}
	m, _ := l.below(floor, "")
	return m.position, nil
}
