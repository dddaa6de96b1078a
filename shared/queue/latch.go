package queue

// latch is a mutex that may be held during calls of the store. Unlike with a [sync.Mutex], virtual time (testing/synctest) passes
// while a goroutine waits for it.
type latch chan struct{}

func newLatch() latch { return make(latch, 1) }

// Lock waits until the latch is free, and takes it.
func (l latch) Lock() { l <- struct{}{} }

// Unlock releases the latch.
func (l latch) Unlock() { <-l }
