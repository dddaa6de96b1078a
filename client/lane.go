package client

import (
	"context"
	"sync"
)

// lane is what appends to streams must have in common to share requests.
type lane struct {
	producer, stream string
	keyed            bool // requests carry Idempotency-Keys, if the client repeats any
}

// lanes are the lanes in which calls are under way.
type lanes struct {
	alone bool

	mu    sync.Mutex
	lanes map[lane]*sharedLane
}

// sharedLane is one of them.
type sharedLane struct {
	share[Appended]
	callers int
}

// enter returns what the calls of a lane share, until leave.
func (a *lanes) enter(c *Client, l lane) *share[Appended] {
	a.mu.Lock()
	defer a.mu.Unlock()
	shared := a.lanes[l]
	if shared == nil {
		shared = &sharedLane{}
		shared.alone = a.alone
		shared.send = func(ctx context.Context, array []byte, _ int) ([]Appended, error) {
			key := ""
			if l.keyed {
				key = c.ownKey()
			}
			return c.appendArray(ctx, l.producer, l.stream, key, array)
		}
		if a.lanes == nil {
			a.lanes = map[lane]*sharedLane{}
		}
		a.lanes[l] = shared
	}
	shared.callers++
	return &shared.share
}

// leave forgets a lane when its last caller leaves.
func (a *lanes) leave(l lane) {
	a.mu.Lock()
	defer a.mu.Unlock()
	shared := a.lanes[l]
	if shared.callers--; shared.callers == 0 {
		delete(a.lanes, l)
	}
}
