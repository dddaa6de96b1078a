package client

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Bounds of the pause between two attempts.
const (
	firstPause = 50 * time.Millisecond
	longPause  = 2 * time.Second
)

// pause answers how long to wait after each failure: twice as long each time, at random between half and the whole, so
// that many clients do not come back together; or what the server asked for, if that is longer.
type pause struct{ bound time.Duration }

func newPause() *pause { return &pause{bound: firstPause} }

func (p *pause) next(err error) time.Duration {
	wait := p.bound/2 + rand.N(p.bound/2)
	p.bound = min(2*p.bound, longPause)
	var e *Error
	if errors.As(err, &e) {
		wait = max(wait, e.RetryAfter)
	}
	return wait
}
