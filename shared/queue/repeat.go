package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/millrace/millrace/shared/journal"
)

// A claim whose answer was lost on the way is made again with its key, and is to have the same tasks. Each lease takes one of its
// instance's places, and the place's item holds the token of the lease and the mark of the claim: so the leases of a claim are
// found where the instance's places are read anyway, also after a restart, and nothing more is written than without a key.

// keyedPlace is a place that a claim with a key has taken.
type keyedPlace struct {
	number      int
	token, mark string
}

// markLen is how long each half of a mark is.
const markLen = 16

// markOf returns what a place says of the claim that took it: the key's digest, then the content's; empty without a key.
func markOf(once *Once) string {
	if once == nil {
		return ""
	}
	return once.Digest()[:markLen] + hex.EncodeToString(once.Fingerprint[:])[:markLen]
}

// holder returns what the item of a permit holds that a lease takes.
func (r *room) holder(p *permit, token string) string {
	if r == nil || r.mark == "" || p.What != r.what {
		return token
	}
	return token + " " + r.mark
}

// takeFor takes a place whose item holds that.
func (o *occupied) takeFor(number int, holder string) {
	o.take(number)
	if token, mark, keyed := strings.Cut(holder, " "); keyed {
		o.keyed = append(o.keyed, keyedPlace{number, token, mark})
	}
}

// repeats reports whether another claim with the same mark has taken places, as far as is known. One that has started tasks goes on.
func (r *room) repeats() bool {
	tokens, _ := r.repeated()
	return len(tokens) > 0 && !r.began
}

// repeated returns the leases of the same claim, as far as is known. The error says that the key was used with another content.
func (r *room) repeated() (tokens []string, err error) {
	if r == nil || r.mark == "" || r.used == nil {
		return nil, nil
	}
	for _, k := range r.used.keyed {
		switch {
		case k.mark == r.mark:
			tokens = append(tokens, k.token)
		case strings.HasPrefix(k.mark, r.mark[:markLen]):
			err = journal.ErrIdempotencyMismatch
		}
	}
	return tokens, err
}

// claimOnce is Claim of one with a capacity: it gives again what the same claim was given.
func (q *Queue) claimOnce(ctx context.Context, by Claimer, max int) ([]Lease, error) {
	at := roomOf(&by)
	leases, err := q.again(ctx, at)
	if err == nil && len(leases) == 0 {
		leases, err = q.claim(ctx, by, at, max)
	}
	if err == nil && len(leases) == 0 {
		leases, err = q.again(ctx, at) // it may have been made elsewhere meanwhile
	}
	return leases, err
}

// again returns the leases that the same claim was given and that are still held, each extended.
func (q *Queue) again(ctx context.Context, at *room) (leases []Lease, err error) {
	if at.mark == "" {
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

// extended extends a lease and returns it.
func (q *Queue) extended(ctx context.Context, token string) (Lease, error) {
	alive, err := q.Heartbeat(ctx, token, Beat{})
	if err != nil {
		return Lease{}, err
	}
	h, err := q.leased(ctx, token)
	if err == nil && h.task.Apart > 0 {
		h.task.Payload, err = q.payload(ctx, h.UUID)
	}
	return Lease{Token: token, Task: h.task, Expires: alive.Expires, Length: h.Length, Replayed: true}, err
}
