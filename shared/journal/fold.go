package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/shared/event"
)

// Fold turns events into the state that a snapshot shows: a value for each key. A new kind of snapshot needs nothing else.
type Fold struct {
	// Name is the argument of Snapshot. It is stored with generations: a fold that changes what it makes of events
	// takes a new name.
	Name string
	// Apply changes state by one event. It is called for every event of the journal in order, must depend on nothing
	// else, and must keep neither e nor its Fields.
	Apply func(state *State, e *event.Event)
	// Show appends to dst what Snapshot shows of a key, so that the value need not keep what follows from the key. It appends
	// nothing for a key that is the fold's own, which Snapshot leaves out. nil: the value itself is shown.
	Show func(dst []byte, key string, value []byte) []byte
}

type show = func(dst []byte, key string, value []byte) []byte

// view holds the states of this process's folds, as of one position.
type view struct {
	turn   turn
	folds  []Fold
	states map[string]*State // by fold
	ledger
	loaded bool
	behind bool // there was more to fold when it was last moved on

	earlier []earlier // states that it had, the oldest first

	since int64 // above this position it is known which keys have changed
	swept bool  // this process has swept, and remembers all changed keys for the generations
}

// Snapshot calls each for every object of a fold, in the order of their keys, and returns the EventId of the last event
// that they show. It sees every append acknowledged before the call. A value must not be changed, and is valid until
// each returns. The error is [ErrUnknownFold] if there is no such fold.
func (j *Journal) Snapshot(ctx context.Context, fold string, each func(key string, value []byte)) (event.ID, error) {
	return j.SnapshotOf(ctx, fold, Part{}, each)
}

// present is what a fold has made of the whole prefix.
type present struct {
	fold    Fold
	state   State
	ledger  // of the prefix
	earlier []earlier
}

// present folds what is new and returns a fold's state.
func (j *Journal) present(ctx context.Context, fold string) (p present, err error) {
	v := &j.view
	done, err := v.enter(ctx)
	if err != nil {
		return p, err
	}
	defer done()
	if err := j.advance(ctx); err != nil {
		return p, err
	}
	at := slices.IndexFunc(v.folds, func(f Fold) bool { return f.Name == fold })
	if at < 0 {
		return p, fmt.Errorf("%w: %s", ErrUnknownFold, fold)
	}
	// Rule (prefix): the stamp is the last id of the prefix that was folded.
	return present{v.folds[at], v.states[fold].frozen(), v.ledger, v.earlier}, nil
}

// advance folds everything up to the sequencer's position. The caller holds the view.
func (j *Journal) advance(ctx context.Context) error {
	return j.advanceUntil(ctx, func() bool { return false })
}

// advanceUntil is advance, and leaves the view behind after a slot with which it is enough.
func (j *Journal) advanceUntil(ctx context.Context, enough func() bool) error {
	seq, err := j.sequence(ctx)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := j.advanceTo(ctx, seq.Position, enough)
		if !errors.Is(err, errEvicted) {
			return err
		}
		if try == 2 {
			return fmt.Errorf("%w: the floor overtakes this process", ErrUnavailable)
		}
		j.view.loaded = false // the floor has passed the view: there is a newer generation
	}
}

func (j *Journal) advanceTo(ctx context.Context, goal int64, enough func() bool) error {
	v := &j.view
	if !v.loaded {
		if err := j.loadNewest(ctx); err != nil {
			return err
		}
	}
	for v.behind = v.position < goal; v.behind && !enough(); {
		run, err := j.slots(ctx, v.position+1, goal)
		if err != nil {
			return err
		}
		for i := range run {
			v.apply(&run[i])
			if v.behind = v.position < goal; enough() {
				break
			}
		}
		last := &run[len(run)-1]
		j.tail.start(last.position+1, last.last) // what this process writes from here on is announced, and need not be read back
	}
	return nil
}

// enter takes the view, which done gives back; it waits as long as ctx lives.
func (v *view) enter(ctx context.Context) (done func(), err error) { return v.turn.take(ctx) }

// turn is a mutex that ends with a context: it is held across calls to the store.
type turn chan struct{}

func (t turn) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (v *view) apply(s *slot) {
	for _, fold := range v.folds {
		state := v.states[fold.Name]
		state.at = 0
		if s.position > v.since {
			state.at = s.position
		}
		for i := range s.events {
			fold.Apply(state, &s.events[i])
		}
	}
	v.count(s)
	if v.worthRemembering(v.events) {
		v.remember(mark{v.position, v.events, v.last})
	}
	if !v.swept && v.touched() > maxTouched {
		v.since = unknown
		v.trim(unknown)
	}
}

// maxTouched bounds the keys that a process remembers as changed as long as it does not sweep.
const maxTouched = 1 << 16

func (v *view) touched() (n int) {
	for _, state := range v.states {
		n += len(state.touched)
	}
	return n
}

// trim forgets what has changed up to a position, which is stored.
func (v *view) trim(position int64) {
	v.since = max(v.since, position)
	for _, state := range v.states {
		state.trim(position)
	}
}

// forgetChanges forgets all changed keys, and remembers those that change from now on.
func (v *view) forgetChanges() {
	v.trim(unknown)
	v.since = v.position
}

// reset empties the view, to fold from behind the ledger's position.
func (v *view) reset(l ledger) {
	v.states = make(map[string]*State, len(v.folds))
	for _, fold := range v.folds {
		v.states[fold.Name] = &State{}
	}
	v.ledger, v.earlier = l, nil
}
