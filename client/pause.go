package client

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// Bounds of the pause between two attempts.
const (
	firstPause = 50 * time.Millisecond
	longPause  = 2 * time.Second
)

// idleMost is the longest pause between requests that bring nothing.
const idleMost = 30 * time.Second

// ofPause is the preference (RFC 7240) of a client that pauses between requests where the host lets it pay for waiting, as Lambda does.
var ofPause = []string{"pause"}

// toPause reports whether a response says that the server has not waited, since the client pauses.
func toPause(header http.Header) bool { return header.Get("Preference-Applied") == ofPause[0] }

// idle computes the pauses between requests to a server that does not wait, while they bring nothing: a second at first, and twice as
// long each time.
type idle struct{ last time.Duration }

// next returns the next pause, at most so long.
func (i *idle) next(most time.Duration) time.Duration {
	i.last = min(max(time.Second, 2*i.last), idleMost)
	return min(i.last, most)
}

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
