package membership

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Extend extends the lease of an instance that has sent a request, as a heartbeat does, once a third of it is over as far as
// this process knows. expires is the end that the caller knows. The error is that of [Membership.Heartbeat].
func (t *Membership) Extend(ctx context.Context, id string, expires time.Time) error {
	if later := t.told.of(id); later.After(expires) {
		expires = later
	}
	if expires.Sub(t.now()) > t.lease*2/3 {
		return nil
	}
	_, err := t.Heartbeat(ctx, id, Change{})
	return err
}

// stayed is the part of a lease for which an instance that makes many exchanges need not be written again: 1 s of 30.
const stayed = 30

// Stay is a heartbeat for an instance as it was read, unless the last one is hardly older than now; it returns the instance with the end
// of its lease. While a third of that is not over, the store may fail to write it: the next one does.
func (t *Membership) Stay(ctx context.Context, i Instance) (Instance, error) {
	left := i.Expires.Sub(t.now())
	if left > t.lease-t.lease/stayed {
		return i, nil
	}
	extended, err := t.heartbeat(ctx, i.ID, &i, Change{})
	if err != nil && !errors.Is(err, ErrNoInstance) && left > t.lease*2/3 {
		return i, nil
	}
	return extended, err
}

// Extended returns an instance with a lease that begins now, and the operation that stores it unless it was changed meanwhile: for
// whoever writes the leases of many together. After that write [Membership.Stayed] is called.
func (t *Membership) Extended(i Instance) (Instance, store.Op) {
	before := i.version
	i.version++
	i.Expires, i.Lease = t.now().Add(t.lease), t.lease
	return i, i.put(store.VersionIs(before))
}

// Stayed notes that the leases of instances that do not drain were extended. As after a heartbeat, one of them leads if nobody else does.
func (t *Membership) Stayed(ctx context.Context, all []Instance) error {
	ids := make([]string, len(all))
	for n := range all {
		ids[n] = all[n].ID
		t.told.note(ids[n], all[n].Expires)
	}
	_, err := t.lead(ctx, ids)
	return err
}

// Heard does what Extend does for the instance with that name in tasks, see [Instance.Claimer]. It does nothing for one that is gone
// or is no instance. Of requests that come at once, one does it; if the store is unavailable or busy, one some seconds later does.
func (t *Membership) Heard(ctx context.Context, claimer string) {
	id := claimer[strings.LastIndexByte(claimer, '/')+1:]
	if !validID(id) {
		return
	}
	if !t.told.begin(id, t.now(), t.lease) {
		return
	}
	if _, err := t.Heartbeat(ctx, id, Change{}); errors.Is(err, ErrNoInstance) {
		t.told.note(id, t.now().Add(t.lease)) // so that it is not read at each request
	}
}

// told remembers the ends of leases that this process has extended.
type told struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxTold bounds what is remembered; at the bound all is dropped, and read again.
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
