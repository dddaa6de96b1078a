package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Of one address, so many sign-ins may fail within a minute.
const (
	maxFailures   = 10
	failureWindow = time.Minute
)

// maxRaces is how often an attempt may meet another one of its address: who meets more is one of many at once.
const maxRaces = 3 * maxFailures

// attempts limits the failed sign-ins of each address. They are an item of the store, so that the limit is one for all processes. An attempt
// counts as failed before its token is looked at, and no longer once that is known: so of many at once no more are looked at than of many
// one by one.
type attempts struct {
	store store.Store
	now   func() time.Time
}

// begin counts an attempt. It returns false, and counts nothing, if the address has to wait.
func (a *attempts) begin(ctx context.Context, address string) (may bool, err error) {
	err = a.change(ctx, address, func(failed []time.Time) []time.Time {
		if may = len(failed) < maxFailures; may {
			failed = append(failed, a.now())
		}
		return failed
	})
	if store.AsConflict(err) != nil {
		return false, nil
	}
	return may && err == nil, err
}

// forget counts one attempt less, since it has not failed. If too many others come in between, it stays counted.
func (a *attempts) forget(ctx context.Context, address string) error {
	err := a.change(ctx, address, func(failed []time.Time) []time.Time { return failed[:max(0, len(failed)-1)] })
	if store.AsConflict(err) != nil {
		return nil
	}
	return err
}

// change replaces the failures of an address, oldest first, which are not over. Others may do so at the same time: then it does so again with
// what they have left, and returns the conflict after maxRaces.
func (a *attempts) change(ctx context.Context, address string, by func(failed []time.Time) []time.Time) (err error) {
	for range maxRaces {
		if err = a.try(ctx, address, by); store.AsConflict(err) == nil {
			return err
		}
	}
	return err
}

// try is change without the repetitions.
func (a *attempts) try(ctx context.Context, address string, by func(failed []time.Time) []time.Time) error {
	key := store.Key{Table: store.Work, Partition: "signin/" + address, Sort: "failed"}
	items, err := a.store.Get(ctx, key)
	if err != nil {
		return err
	}
	var failed []time.Time
	item, condition := store.Item{Key: key, Expires: a.now().Add(failureWindow)}, store.Absent
	if found := items[0]; found != nil {
		item.Version, condition = found.Version, store.VersionIs(found.Version)
		if err := json.Unmarshal(found.Value, &failed); err != nil {
			return fmt.Errorf("web: failed sign-ins: %w", err)
		}
	}
	failed = slices.DeleteFunc(failed, func(at time.Time) bool { return a.now().Sub(at) >= failureWindow })
	changed := by(slices.Clone(failed))
	if len(changed) == len(failed) {
		return nil
	}
	item.Version++
	if item.Value, err = json.Marshal(changed); err != nil {
		return err
	}
	// Race: another attempt of the address, which has counted since the read, must not be lost.
	return a.store.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{store.Put(item, condition)}})
}
