package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
)

// A claim whose response was lost is repeated with its idempotency key, and must get the same tasks. Each lease takes a slot of its
// instance, and the slot's item holds the token of the lease and the mark of the claim: so the leases of a claim are found among the
// instance's slots, which a claim reads anyway, also after a restart, and no more items are written than without a key.

// markLen is how many characters each half of a mark has.
const markLen = 16

// markOf returns the mark of a claim: the beginnings of the key's digest and of the content's fingerprint; "" without a key.
func markOf(once *Once) string {
	if once == nil {
		return ""
	}
	return once.Digest()[:markLen] + hex.EncodeToString(once.Fingerprint[:])[:markLen]
}

// repeats reports whether another claim with the same mark has taken slots, as far as was read; false if this one has started tasks.
func (s *instanceSlots) repeats() bool {
	tokens, _ := s.repeated()
	return len(tokens) > 0 && !s.began
}

// repeated returns the tokens of the leases of claims with the same mark, as far as was read. The error is
// [journal.ErrIdempotencyMismatch] if the key was used with another content.
func (s *instanceSlots) repeated() (tokens []string, err error) {
	if s == nil || s.Mark == "" || s.taken == nil {
		return nil, nil
	}
	for _, slot := range s.taken.Marked() {
		switch {
		case slot.Mark == s.Mark:
			tokens = append(tokens, slot.Holder)
		case strings.HasPrefix(slot.Mark, s.Mark[:markLen]):
			err = journal.ErrIdempotencyMismatch
		}
	}
	return tokens, err
}

// slotsOf returns the slots of a claimer with a capacity, which are not read yet.
func (q *Queue) slotsOf(by *Claimer) *instanceSlots {
	return &instanceSlots{Wanted: limit.Wanted{Limit: layout.InstanceLimit(by.Instance), Most: by.Capacity, Mark: markOf(by.Once)}}
}

// claimOnce is Claim of a claimer with a capacity: it returns the leases of an earlier claim with the same key, if any are held.
func (q *Queue) claimOnce(ctx context.Context, by Claimer, max int) (leases []Lease, err error) {
	at := q.slotsOf(&by)
	lines := q.waiters.looking(by.Instance)
	defer func() { q.looked(at, &by, lines, leases, max) }()
	leases, err = q.again(ctx, at)
	if err == nil && len(leases) == 0 {
		leases, err = q.claim(ctx, by, at, max)
	}
	if err == nil && len(leases) == 0 {
		leases, err = q.again(ctx, at) // another process may have made the same claim meanwhile
	}
	return leases, err
}

// again extends and returns the leases of an earlier claim with the same key that are still held.
func (q *Queue) again(ctx context.Context, at *instanceSlots) (leases []Lease, err error) {
	if at.Mark == "" {
		return nil, nil
	}
	if err := at.read(ctx, q); err != nil {
		return nil, err
	}
	tokens, err := at.repeated()
	for _, token := range tokens {
		l, err := q.extended(ctx, token)
		if errors.Is(err, ErrStale) || errors.Is(err, ErrNoLease) {
			at.forget()
			continue
		}
		if err != nil {
			return nil, err
		}
		leases = append(leases, l)
	}
	return leases, err
}

// extended extends a lease, and returns it with its task.
func (q *Queue) extended(ctx context.Context, token string) (Lease, error) {
	alive, err := q.Heartbeat(ctx, token, Beat{})
	if err != nil {
		return Lease{}, err
	}
	h, err := layout.LoadLease(ctx, q.store, token)
	if err == nil && h.Task.Apart > 0 {
		h.Task.Payload, err = layout.LoadPayload(ctx, q.store, h.UUID)
	}
	return Lease{Token: token, Task: h.Task, Expires: alive.Expires, Length: h.Length, Replayed: true}, err
}
