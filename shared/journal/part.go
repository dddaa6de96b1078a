package journal

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/event"
)

// Part says which objects of a fold a snapshot has. The zero Part is all that the fold shows.
type Part struct {
	// Prefixes are what keys begin with. They are in order, and none begins with another. A snapshot costs by the objects
	// below them, however many others there are. nil: keys begin with anything.
	Prefixes []string
	Match    func(key string) bool // reports whether an object below the prefixes is among them; nil: each is
	Raw      bool                  // the values are as the fold keeps them, not as it shows them
}

// SnapshotOf is Snapshot of a part of the objects.
func (j *Journal) SnapshotOf(ctx context.Context, fold string, p Part, each func(key string, value []byte)) (event.ID, error) {
	now, err := j.present(ctx, fold)
	if err != nil {
		return 0, err
	}
	objects := now.state.part(p.Prefixes)
	return now.last, objects.show(ctx, now.fold.Show, &p, each)
}

// show calls each with what a snapshot of p has.
func (o *part) show(ctx context.Context, show show, p *Part, each func(key string, value []byte)) error {
	n := 0
	var shown []byte
	for key, value := range o.all() {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if p.Match != nil && !p.Match(key) {
			continue
		}
		if show != nil && !p.Raw {
			if shown = show(shown[:0], key, value); len(shown) == 0 {
				continue
			}
			value = shown
		}
		each(key, value)
	}
	return nil
}

// part is the keys of a state that begin with one of some prefixes. Later changes of the state do not affect it.
type part struct {
	prefixes []string
	packed   table
	changes  []change // in order
}

// part returns the keys that begin with one of the prefixes, which are in order; nil: all.
func (s *State) part(prefixes []string) part {
	if prefixes == nil {
		prefixes = []string{""}
	}
	p := part{prefixes: prefixes, packed: s.packed}
	for key, c := range s.changed {
		if p.has(key) {
			p.changes = append(p.changes, c)
		}
	}
	slices.SortFunc(p.changes, func(a, b change) int { return cmp.Compare(a.key, b.key) })
	return p
}

// has reports whether the key begins with one of the prefixes.
func (p *part) has(key string) bool {
	n, there := slices.BinarySearch(p.prefixes, key)
	return there || n > 0 && strings.HasPrefix(key, p.prefixes[n-1])
}

// all returns the keys and their values, in the order of the keys. A value must not be changed.
func (p *part) all() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, prefix := range p.prefixes {
			n, _ := slices.BinarySearchFunc(p.changes, prefix, func(c change, key string) int { return cmp.Compare(c.key, key) })
			for r := range p.packed.from(prefix).all(p.changes[n:]) {
				key := string(r.key)
				if key < prefix {
					continue
				}
				if !strings.HasPrefix(key, prefix) {
					break
				}
				if !yield(key, r.value) {
					return
				}
			}
		}
	}
}
