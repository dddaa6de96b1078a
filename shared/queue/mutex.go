package queue

import (
	"context"
	"sync"
)

// chanMutex is a mutex that may be held during calls of the store. Unlike with a [sync.Mutex], virtual time (testing/synctest) passes
// while a goroutine waits for it.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

// Lock waits until the mutex is free, and takes it.
func (m chanMutex) Lock() { m <- struct{}{} }

// Unlock releases the mutex.
func (m chanMutex) Unlock() { <-m }

// keyedMutex is a mutex for each name that somebody holds or waits for.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*namedMutex
}

type namedMutex struct {
	chanMutex
	users int // who hold it or wait for it
}

// lock waits until the mutex of a name is free, and takes it. The error is that of ctx if it ends before.
func (k *keyedMutex) lock(ctx context.Context, name string) (unlock func(), err error) {
	l := k.enter(name)
	select {
	case l.chanMutex <- struct{}{}:
		return func() {
			l.Unlock()
			k.leave(name, l)
		}, nil
	case <-ctx.Done():
		k.leave(name, l)
		return nil, ctx.Err()
	}
}

func (k *keyedMutex) enter(name string) *namedMutex {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks == nil {
		k.locks = map[string]*namedMutex{}
	}
	l := k.locks[name]
	if l == nil {
		l = &namedMutex{chanMutex: newChanMutex()}
		k.locks[name] = l
	}
	l.users++
	return l
}

// leave forgets a name with its last user.
func (k *keyedMutex) leave(name string, l *namedMutex) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(k.locks, name)
	}
}
