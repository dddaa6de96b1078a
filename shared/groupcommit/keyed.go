package groupcommit

import (
	"context"
	"sync"
)

// Keyed is a [Group] for each key that callers name, for as long as they wait: parts of different keys share no write and do not
// wait for each other. Its method may be called concurrently.
type Keyed[K comparable, P any] struct {
	o Options[P]

	mu     sync.Mutex
	groups map[K]*counted[P]
	spare  *counted[P] // the group that was dropped last, to be used again
}

// counted is a group and the number of its callers.
type counted[P any] struct {
	Group[P]
	callers int
}

// NewKeyed returns a Keyed whose groups have these options. There is nothing to close.
func NewKeyed[K comparable, P any](o Options[P]) *Keyed[K, P] {
	return &Keyed[K, P]{o: o, groups: map[K]*counted[P]{}}
}

// Do is [Group.Do] of the group of a key.
func (k *Keyed[K, P]) Do(ctx context.Context, key K, parts ...P) error {
	g := k.enter(key)
	defer k.leave(key, g)
	return g.Do(ctx, parts...)
}

func (k *Keyed[K, P]) enter(key K) *counted[P] {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.groups[key]
	if g == nil {
		if g, k.spare = k.spare, nil; g == nil {
			g = &counted[P]{Group: Group[P]{o: &k.o}}
		}
		k.groups[key] = g
	}
	g.callers++
	return g
}

// leave drops the group with its last caller: then nothing of it is being written, and nothing waits.
func (k *Keyed[K, P]) leave(key K, g *counted[P]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if g.callers--; g.callers == 0 {
		delete(k.groups, key)
		k.spare = g
	}
}
