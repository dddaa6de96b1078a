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

// pause computes how long to wait after each failure: a random time between half of a bound and the bound, which doubles each
// time, so that many clients do not return together; or the server's Retry-After, if that is longer.
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
