package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Leadership is who leads, until when, and under which term.
type Leadership struct {
	Holder  string    `json:"h"` // the id of an instance; "" where nobody has ever led
	Expires time.Time `json:"x"` // the end of its lease
	Term    int64     `json:"-"` // grows by one with each new leader; 0 before the first
}

// Leader returns who leads; nobody does where Expires has passed.
func (t *Membership) Leader(ctx context.Context) (Leadership, error) {
	items, err := t.store.Get(ctx, leaderKey)
	if err != nil {
		return Leadership{}, unavailable("read who leads", err)
	}
	var l Leadership
	if items[0] == nil {
		return l, nil
	}
	if err := json.Unmarshal(items[0].Value, &l); err != nil {
		return l, fmt.Errorf("membership: %v cannot be read: %w", leaderKey, err)
	}
	l.Term = items[0].Version
	return l, nil
}

// Lead makes an instance the leader if nobody else is, extends its lease if half of it is over, and returns who leads.
//
// Race: of two that take the same ended lease, one gets the next term and the other reads again. A leader that extends its
// lease late keeps its term unless another has taken the next, which then conflicts with the extension. So two may believe to
// lead, but only one of their fences holds.
func (t *Membership) Lead(ctx context.Context, id string) (Leadership, error) {
	return t.lead(ctx, []string{id})
}

// lead is Lead for instances of which one leads if nobody else does.
func (t *Membership) lead(ctx context.Context, ids []string) (Leadership, error) {
	for try := 0; ; try++ {
		l, err := t.Leader(ctx)
		if err != nil {
			return l, err
		}
		now, off := t.time(ctx)
		cond, mine := store.VersionIs(l.Term), slices.Contains(ids, l.Holder)
		switch {
		case l.Term == 0:
			cond = store.Absent
		case !mine && (off != nil || l.Expires.After(now)), mine && l.Expires.Sub(now) > t.lease/2:
			return l, nil
		}
		if !mine {
			l.Holder = ids[0]
			l.Term++
		}
		l.Expires = now.Add(t.lease)
		err = t.write(ctx, l.put(cond))
		if store.AsConflict(err) == nil || try == tries || !wait(ctx) {
			return l, unavailable("lead", err)
		}
	}
}

// resign ends the lease of a leader now, so that the next need not wait for its end. The term stays until another leads.
func (t *Membership) resign(ctx context.Context, id string) error {
	l, err := t.Leader(ctx)
	if err != nil || l.Holder != id {
		return err
	}
	l.Expires = t.now()
	if err := t.write(ctx, l.put(store.VersionIs(l.Term))); err != nil && store.AsConflict(err) == nil {
		return unavailable("resign", err)
	}
	return nil
}

func (l Leadership) put(cond store.Condition) store.Op {
	value, err := json.Marshal(l)
	if err != nil {
		panic(err) // a text and a time
	}
	return store.Put(store.Item{Key: leaderKey, Version: l.Term, Value: value}, cond)
}
