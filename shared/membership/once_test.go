package membership_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// A used key is recognized on a store whose conflicts do not tell what they found.
func TestRegisterOnceWhereConflictsDoNotTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := faulty.NewService(memory.New(memory.Options{}), faulty.Faults{Untold: true}, nil).Process("p")
		b := setup(t)
		b.at = time.Now()
		b.Membership = membership.Open(membership.Options{Store: s, Now: b.now})
		first, err := b.once(1)
		if err != nil || first.Replayed {
			t.Fatalf("Register = %+v, %v", first, err)
		}
		if again, err := b.once(1); err != nil || !again.Replayed || again.ID != first.ID || again.Term != first.Term {
			t.Errorf("Register with the same key = %+v, %v, want %s again", again, err, first.ID)
		}
		if _, err := b.once(2); !errors.Is(err, journal.ErrIdempotencyMismatch) {
			t.Errorf("Register of another capacity with the same key = %v, want ErrIdempotencyMismatch", err)
		}
	})
}

// A registration that always conflicts with what cannot be found ends, after pauses.
func TestRegisterOnceGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{Store: memory.New(memory.Options{})}
		b := setup(t)
		b.at = time.Now()
		b.Membership = membership.Open(membership.Options{Store: s, Now: b.now})
		if i, err := b.once(1); !errors.Is(err, journal.ErrUnavailable) || s.writes != 9 {
			t.Errorf("Register = %+v, %v, after %d writes, want ErrUnavailable after 9", i, err, s.writes)
		}
	})
}

// refusing returns of each Write that its second operation, the key's note, conflicts with something.
type refusing struct {
	store.Store
	writes int
}

func (r *refusing) Write(context.Context, store.Write) error {
	r.writes++
	return &store.Conflict{Failed: []store.Failure{{Op: 1}}}
}
