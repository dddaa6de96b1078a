package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Restored makes every EventId handed out so far torn, after the journal's data came from a backup: followers may have seen
// events that the backup does not hold, and must take a new snapshot. It returns the EventId at which the journal begins
// anew; the state that snapshots show is kept.
func (j *Journal) Restored(ctx context.Context) (event.ID, error) {
	done, err := j.view.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	t, err := j.reserve(ctx, time.Now().Add(j.timing.Append), 1)
	if err != nil {
		return 0, err
	}
	// A slot without events whose last id is from the clock: above all ids that were handed out before the restore.
	w := j.keys.slotOps(t.Position, void(event.ID(t.LastID)))
	held, err := j.writeVoid(ctx, w, known{notAfter: t.Sent.Add(j.timing.Age)}, t.Position)
	if err != nil || held != nil {
		return 0, errors.Join(fmt.Errorf("%w: mark the restore", ErrUnavailable), err)
	}
	if err := j.advance(ctx); err != nil {
		return 0, err
	}
	if err := j.generate(ctx, t.Position); err != nil {
		return 0, j.unavailable("store a generation", err)
	}
	if err := j.store.Raise(ctx, j.keys.sequencer(), t.Position, t.LastID); err != nil {
		return 0, j.unavailable("raise the floor", err)
	}
	return event.ID(t.LastID), nil
}

// generate stores a complete generation that reaches at least a position. The caller holds the view.
func (j *Journal) generate(ctx context.Context, position int64) error {
	for {
		m, err := j.current(ctx, nil)
		if err != nil {
			return err
		}
		if m, err = j.extend(ctx, m); err != nil {
			return err
		}
		if m.position() >= position {
			return nil
		}
		if b := j.view.base(m); b != nil {
			if _, err := j.storeBase(ctx, b); err != nil {
				return err
			}
		}
	}
}
