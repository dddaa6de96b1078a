package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/event"
)

// Verified says what Verify has seen.
type Verified struct {
	Floor   int64    // the position of the newest evicted slot
	Slots   int64    // above the floor
	Voids   int64    // of them without events
	Events  int64    // in the others
	FirstID event.ID // of the oldest event, 0 if there is none
	LastID  event.ID // of the newest slot
}

// Verify reads every slot above the floor and checks what must always hold: positions without a gap, each readable, ids
// rising with them (I1). The error is ErrDamaged and names the position.
func (j *Journal) Verify(ctx context.Context) (Verified, error) {
	seq, err := j.sequence(ctx)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{Floor: seq.FloorPosition, LastID: event.ID(seq.FloorID)}
	for position := seq.FloorPosition + 1; position <= seq.Position; {
		run, err := j.slots(ctx, position, seq.Position)
		if errors.Is(err, errEvicted) {
			return v, fmt.Errorf("%w: the floor moved meanwhile; verify again", ErrUnavailable)
		}
		if err != nil {
			return v, err
		}
		for i := range run {
			if err := v.add(&run[i]); err != nil {
				return v, err
			}
		}
		position = run[len(run)-1].position + 1
	}
	return v, nil
}

func (v *Verified) add(s *slot) error {
	v.Slots++
	if len(s.events) == 0 {
		v.Voids++
	}
	for i := range s.events {
		id := s.events[i].ID
		if id <= v.LastID {
			return fmt.Errorf("%w: position %d: id %d after %d", ErrDamaged, s.position, id, v.LastID)
		}
		if v.FirstID == 0 {
			v.FirstID = id
		}
		v.LastID = id
		v.Events++
	}
	if s.last < v.LastID {
		return fmt.Errorf("%w: position %d: last id %d after %d", ErrDamaged, s.position, s.last, v.LastID)
	}
	v.LastID = s.last
	return nil
}
