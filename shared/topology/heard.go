package topology

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// Extend keeps an instance that has sent a request, which is as good as a heartbeat: once a third of its lease is over, as far
// as this process knows, it is extended. The error is that of [Topology.Heartbeat].
func (t *Topology) Extend(ctx context.Context, id string, expires time.Time) error {
	if later := t.told.of(id); later.After(expires) {
		expires = later
	}
	if expires.Sub(t.now()) > t.lease*2/3 {
		return nil
	}
	_, err := t.Heartbeat(ctx, id, Change{})
	return err
}

// Heard does the same for whoever is called so in tasks, see [Instance.Claimer]; one that is gone, or is no instance, is left
// alone. Of requests that come at once, one does it; where the store is away or busy, one some seconds later.
func (t *Topology) Heard(ctx context.Context, claimer string) {
	id := claimer[strings.LastIndexByte(claimer, '/')+1:]
	if !validID(id) {
		return
	}
	if !t.told.begin(id, t.now(), t.lease) {
		return
	}
	if _, err := t.Heartbeat(ctx, id, Change{}); errors.Is(err, ErrNoInstance) {
		t.told.note(id, t.now().Add(t.lease)) // it is not looked for at each request
	}
}

// told is until when instances live, as far as this process has told them.
type told struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxTold bounds what is remembered; what is forgotten is read again.
const maxTold = 10_000

func (s *told) of(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until[id]
}

// begin reports whether an instance is to be told that it lives on. Others need not tell it for a tenth of its lease.
func (s *told) begin(id string, now time.Time, lease time.Duration) bool {
	soon := now.Add(lease * 2 / 3)
	if s.of(id).After(soon) {
		return false
	}
	s.note(id, soon.Add(lease/10))
	return true
}

func (s *told) note(id string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil || len(s.until) >= maxTold {
		s.until = map[string]time.Time{}
	}
	s.until[id] = until
}
