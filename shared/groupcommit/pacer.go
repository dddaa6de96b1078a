package groupcommit

import (
	"sync"
	"time"

	"github.com/millrace/millrace/shared/rate"
)

// Pacer tells a group on a store that other processes share whether one more write may begin beside those under way: while writes are
// rare that is the shortest wait, and where they follow one another closely what waits had better share the next, since each write
// takes a ticket of the one sequencer that all processes have. The zero Pacer has seen no write. Its methods may be called concurrently.
type Pacer struct {
	mu    sync.Mutex
	meter rate.Meter
	last  time.Time // when a write began last
}

// frequent is how many writes a second follow one another closely: of 16 processes with as many, a partition of DynamoDB bears the
// tickets.
const frequent = 60

// Slow is how long a write takes that does not keep others waiting.
const Slow = 100 * time.Millisecond

// Began counts a write that begins.
func (p *Pacer) Began() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	p.meter.Add(p.last.UnixMicro(), 1)
}

// IsFrequent reports whether there are 60 writes a second or more, of which the newest began less than 100 ms ago: one that takes
// longer does not keep others waiting.
func (p *Pacer) IsFrequent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.meter.PerSecond(time.Now().UnixMicro()) >= frequent && time.Since(p.last) < Slow
}
