package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// Retention says how much of the journal is kept: an event beyond either bound is evicted by the next sweep, exact to 1/512
// of the slots that are kept. A field that is zero or negative means its default: nothing is evicted by mistake.
type Retention struct {
	Events int64         // the newest so many are within this bound; default 1,000,000
	Age    time.Duration // events that are not older are within this bound; default 7 days
}

func (r Retention) withDefaults() Retention {
	orDefault(&r.Events, 1_000_000)
	orDefault(&r.Age, 7*24*time.Hour)
	return r
}

// Swept is the result of a sweep.
type Swept struct {
	Position   int64    // of the newest slot
	Events     int64    // ever written to the journal
	Generation int64    // the position that the newest complete generation reaches; 0: none is known
	Floor      int64    // the position of the newest evicted slot, 0 if there is none
	FloorID    event.ID // its last id
	Removed    int64    // slots up to this position have been removed
}

// Sweep does the journal's upkeep once: folds what is new, brings the stored generation up to date if that is due, moves the
// floor, and removes slots that the floor passed RemoveAfter ago. It may run in several processes at once, and be cut off
// anywhere; the next one does what there was no time for before ctx's deadline.
func (j *Journal) Sweep(ctx context.Context) (Swept, error) {
	newest, kept := j.keepGenerations(ctx)
	if kept != nil && newest == 0 {
		return Swept{}, kept
	}
	// If a base cannot be stored, the floor still moves up to the generation that is.
	done, err := j.view.enter(ctx)
	if err != nil {
		return Swept{}, errors.Join(kept, err)
	}
	defer done()
	seq, err := j.raiseFloor(ctx, newest)
	if err != nil {
		return Swept{}, errors.Join(kept, err)
	}
	removed, err := j.removeEvicted(ctx, seq.FloorPosition)
	v := &j.view
	return Swept{
		Position: v.position, Events: v.events, Generation: newest,
		Floor: seq.FloorPosition, FloorID: event.ID(seq.FloorID), Removed: removed,
	}, errors.Join(kept, err)
}

// raiseFloor moves the floor as retention asks. Rule (retention): over filled slots only, as those of the folded prefix
// are, and never past the newest complete generation.
func (j *Journal) raiseFloor(ctx context.Context, newest int64) (store.Sequence, error) {
	seq, err := j.sequence(ctx)
	if err != nil {
		return seq, err
	}
	tooOld := event.IDAt(j.now().Add(-j.keep.Age))
	floor := j.view.evictable(j.keep, tooOld, min(newest, j.view.position))
	if floor.Position <= seq.FloorPosition {
		return seq, nil
	}
	if err := j.store.Raise(ctx, j.keys.sequencer(), floor.Position, int64(floor.Last)); err != nil {
		return seq, j.unavailable("raise the floor", err)
	}
	j.view.forget(floor.Position)
	j.view.forgetEarlier(floor.Position)
	return j.sequence(ctx)
}

// removal is what sweeps remember of the floor's moves.
type removal struct {
	Removed int64    `json:"removed"` // slots up to this position are gone
	Passed  []passed `json:"passed"`
	Floor   int64    `json:"floor"` // the floor that was noted last
}

// passed notes that slots up to a position were of no use any more at a moment, by the store's date: the floor had passed them,
// and the state at the floor could be told without them.
type passed struct {
	Position int64 `json:"position"`
	At       int64 `json:"at"` // milliseconds since 1970
}

// removeEvicted removes the slots that the floor had passed RemoveAfter ago. Rule (removal): never earlier, since a
// writer frozen for that long might write a removed slot anew. Rule (ladder): nor those above the ladder's foot.
func (j *Journal) removeEvicted(ctx context.Context, floor int64) (int64, error) {
	state, version, err := j.removal(ctx)
	if err != nil || floor == 0 {
		return state.Removed, err
	}
	date, err := j.store.Date(ctx)
	if err != nil {
		return state.Removed, j.unavailable("read the store's date", err)
	}
	removed, changed := state.expired(date, j.timing.RemoveAfter)
	if state.mayNote(floor, date, j.timing.RemoveAfter/24) {
		foot, err := j.foot(ctx, floor)
		if err != nil {
			return state.Removed, err
		}
		state.note(floor, foot, date)
		changed = true
	}
	if !changed {
		return state.Removed, nil
	}
	if err := j.removeSlots(ctx, state.Removed, removed); err != nil {
		return state.Removed, j.unavailable("remove evicted slots", err)
	}
	state.Removed = removed
	value, err := json.Marshal(state)
	if err != nil {
		return removed, err
	}
	cond := store.Absent
	if version > 0 {
		cond = store.VersionIs(version)
	}
	item := store.Item{Key: j.keys.upkeep(), Version: version + 1, Value: value}
	err = j.put(ctx, store.Write{Token: j.token(), Ops: []store.Op{store.Put(item, cond)}})
	if store.AsConflict(err) != nil {
		return removed, nil // another sweep notes the same
	}
	return removed, err
}

func (j *Journal) removal(ctx context.Context) (state removal, version int64, err error) {
	items, err := j.store.Get(ctx, j.keys.upkeep())
	if err != nil {
		return state, 0, j.unavailable("read the upkeep", err)
	}
	if items[0] == nil {
		return state, 0, nil
	}
	if err := json.Unmarshal(items[0].Value, &state); err != nil {
		return state, 0, fmt.Errorf("%w: upkeep: %w", ErrDamaged, err)
	}
	return state, items[0].Version, nil
}

// expired forgets what was noted so long ago that it may be removed, and returns up to which position that is.
func (r *removal) expired(date time.Time, after time.Duration) (removable int64, changed bool) {
	removable = r.Removed
	for len(r.Passed) > 0 && !date.Before(time.UnixMilli(r.Passed[0].At).Add(after)) {
		removable = max(removable, r.Passed[0].Position)
		r.Passed = r.Passed[1:]
		changed = true
	}
	return removable, changed
}

// mayNote reports whether a floor is to be noted: it has moved, and what was noted last is older than each.
func (r *removal) mayNote(floor int64, date time.Time, each time.Duration) bool {
	n := len(r.Passed)
	return floor > r.Floor && (n == 0 || !date.Before(time.UnixMilli(r.Passed[n-1].At).Add(each)))
}

// note adds where the floor is, and the ladder's foot below it.
func (r *removal) note(floor, foot int64, date time.Time) {
	r.Floor = floor
	if n := len(r.Passed); foot > r.Removed && (n == 0 || r.Passed[n-1].Position < foot) {
		r.Passed = append(r.Passed, passed{foot, date.UnixMilli()})
	}
}

// removeSlots removes the slots above one position up to another, partition by partition.
func (j *Journal) removeSlots(ctx context.Context, above, upTo int64) error {
	size := pageSize * j.keys.spread
	for block := (above + 1) / size; above < upTo && block <= upTo/size; block++ {
		for _, partition := range j.keys.partitions(block) {
			r := store.Range{Table: store.Journal, Partition: partition, To: positionSort(upTo + 1)}
			if err := j.store.Remove(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}
