package queue

// latch is a lock that is held while the store is asked, which may take a while. Unlike a [sync.Mutex] it is made for
// waiting: virtual time passes meanwhile.
type latch chan struct{}

func newLatch() latch { return make(latch, 1) }

// Lock waits until nobody else holds the latch.
func (l latch) Lock() { l <- struct{}{} }

// Unlock lets the next one have it.
func (l latch) Unlock() { <-l }
