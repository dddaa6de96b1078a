package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/event"
)

// Verified is the result of Verify.
type Verified struct {
	Floor   int64    // the position of the newest evicted slot, 0 if there is none
	Slots   int64    // the number of slots above the floor
	Voids   int64    // how many of them have no events
	Events  int64    // how many events the others have
	FirstID event.ID // of the oldest event, 0 if there is none
	LastID  event.ID // the last id of the newest slot
}

// Verify reads every slot above the floor and checks that each is readable, that positions have no gap, and that ids rise
// with them (rising ids, see docs/invariants.md). The error is [ErrDamaged] and names the position. Missing slots are filled
// as by any reader.
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
