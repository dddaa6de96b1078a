package membership_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store"
)

// strained is a store whose user hears of an instance again while it writes of that, and that is busy for a while.
type strained struct {
	store.Store
	meanwhile func()
	busy      bool
	writes    int
}

// Write counts.
func (s *strained) Write(ctx context.Context, w store.Write) error {
	if strings.HasPrefix(w.Ops[0].Item.Key.Partition, "instances") {
		s.writes++
		s.meanwhile()
	}
	if s.busy {
		return store.ErrBusy
	}
	return s.Store.Write(ctx, w)
}

// Many requests of an instance that come at once keep it by one write; and a store that is busy is not asked again by each of them.
func TestRequestsThatComeAtOnceKeepAnInstanceByOneWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i := b.register("a")
	s := &strained{Store: b.store, meanwhile: func() {}}
	there := membership.Open(membership.Options{Store: s, Now: func() time.Time { return b.at }})
	hear := func() { there.Heard(t.Context(), i.Claimer()) }
	s.meanwhile = func() {
		if s.writes < 20 {
			hear()
		}
	}
	hear()
	hear()
	if s.writes != 1 {
		t.Errorf("an instance that is heard of many times at once is written %d times, want once", s.writes)
	}
	b.at = b.at.Add(15 * time.Second)
	s.writes, s.busy = 0, true
	hear()
	once := s.writes
	hear()
	if s.writes != once {
		t.Errorf("%d writes to a busy store, want the %d of the first request", s.writes, once)
	}
	s.busy = false
	b.at = b.at.Add(5 * time.Second)
	hear()
	b.at = b.at.Add(25 * time.Second)
	if _, err := there.Get(t.Context(), i.ID); err != nil {
		t.Errorf("Get = %v 25 s after the instance was heard of", err)
	}
}
