package lock

import (
	"context"
	"sync"
	"time"
)

// Mutex is a mutex that may be held during calls of the store. Unlike with a [sync.Mutex], virtual time (testing/synctest) passes
// while a goroutine waits for it.
type Mutex chan struct{}

// New returns a Mutex that is free.
func New() Mutex { return make(Mutex, 1) }

// Lock waits until the mutex is free, and takes it.
func (m Mutex) Lock() { m <- struct{}{} }

// LockWithin takes the mutex if it is free within a time, and reports whether it has.
func (m Mutex) LockWithin(d time.Duration) bool {
	select {
	case m <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case m <- struct{}{}:
		return true
	case <-late.C:
		return false
	}
}

// Unlock releases the mutex.
func (m Mutex) Unlock() { <-m }

// Keyed is a mutex for each name that somebody holds or waits for.
type Keyed struct {
	mu    sync.Mutex
	locks map[string]*namedMutex
}

type namedMutex struct {
	Mutex
	users int // who hold it or wait for it
}

// Lock waits until the mutex of a name is free, and takes it. The error is that of ctx if it ends before.
func (k *Keyed) Lock(ctx context.Context, name string) (unlock func(), err error) {
	l := k.enter(name)
	select {
	case l.Mutex <- struct{}{}:
		return func() {
			l.Unlock()
			k.leave(name, l)
		}, nil
	case <-ctx.Done():
		k.leave(name, l)
		return nil, ctx.Err()
	}
}

func (k *Keyed) enter(name string) *namedMutex {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks == nil {
		k.locks = map[string]*namedMutex{}
	}
	l := k.locks[name]
	if l == nil {
		l = &namedMutex{Mutex: New()}
		k.locks[name] = l
	}
	l.users++
	return l
}

// leave forgets a name with its last user.
func (k *Keyed) leave(name string, l *namedMutex) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(k.locks, name)
	}
}
