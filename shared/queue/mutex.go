package queue

import "sync"

// chanMutex is a mutex that may be held during calls of the store. Unlike with a [sync.Mutex], virtual time (testing/synctest) passes
// while a goroutine waits for it.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

// Lock waits until the mutex is free, and takes it.
func (m chanMutex) Lock() { m <- struct{}{} }

// Unlock releases the mutex.
func (m chanMutex) Unlock() { <-m }

// keyedMutex is a mutex for each name.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]chanMutex
}

func (k *keyedMutex) lock(name string) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]chanMutex{}
	}
	l := k.locks[name]
	if l == nil {
		l = newChanMutex()
		k.locks[name] = l
	}
	k.mu.Unlock()
	l.Lock()
	return l.Unlock
}
