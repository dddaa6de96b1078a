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

// forgetful is a store that applies each write and loses its response; the write that is sent again conflicts with itself, without
// being told with what.
type forgetful struct {
	store.Store
	sent map[string]bool
}

func (f *forgetful) Write(ctx context.Context, w store.Write) error {
	if !f.sent[w.Token] {
		f.sent[w.Token] = true
		if err := f.Store.Write(ctx, w); err != nil {
			return err
		}
		return store.ErrUnknown
	}
	c := &store.Conflict{}
	for n := range w.Ops {
		c.Failed = append(c.Failed, store.Failure{Op: n})
	}
	return c
}

// A registration whose response was lost meets itself when it is sent again, and is told as new, with a key or without one.
func TestARegistrationThatMeetsItselfSucceeds(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(b *bench) (membership.Instance, error){
		"with a key": func(b *bench) (membership.Instance, error) { return b.once(1) },
		"without a key": func(b *bench) (membership.Instance, error) {
			return b.Register(b.t.Context(), membership.New{Name: "w", Jobs: []string{"/a"}, Capacity: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				b.at = time.Now()
				s := &forgetful{Store: memory.New(memory.Options{}), sent: map[string]bool{}}
				b.Membership = membership.Open(membership.Options{Store: s, Now: b.now})
				i, err := register(b)
				if err != nil || i.Replayed {
					t.Fatalf("Register = %+v, %v, want a new instance", i, err)
				}
				if l, err := b.Leader(t.Context()); err != nil || l.Holder != i.ID || l.Term != 1 {
					t.Errorf("Leader = %+v, %v, want the instance in its first term", l, err)
				}
			})
		})
	}
}
