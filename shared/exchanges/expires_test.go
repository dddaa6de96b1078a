package exchanges_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store"
)

// Each exchange is a heartbeat of its instance; those that follow each other closely share one write.
func TestAnExchangeKeepsItsInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t, shared(t))
		id := p.register(t, 1)
		seq := int64(0)
		next := func() time.Time {
			seq++
			return p.must(t, id, exchanges.Request{Seq: seq}).Expires
		}
		for pause, left := range map[time.Duration]time.Duration{
			2 * time.Second: membership.DefaultLease, 25 * time.Second: membership.DefaultLease, time.Millisecond: membership.DefaultLease - time.Millisecond,
		} {
			time.Sleep(5 * time.Second)
			next()
			time.Sleep(pause)
			if got := time.Until(next()); got != left {
				t.Errorf("an exchange %v after another leaves %v, want %v", pause, got, left)
			}
		}
		time.Sleep(membership.DefaultLease)
		if _, err := p.Exchange(t.Context(), id, exchanges.Request{Seq: 100}); err == nil {
			t.Error("an exchange of an instance whose lease is over")
		}
	})
}

// A store that does not write the heartbeat does not fail the exchange while the lease lasts for long.
func TestABusyStoreDoesNotEndAnInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared(t)
		id := open(t, s).register(t, 1)
		there := membership.Open(membership.Options{Store: &doomed{Store: s, fate: fate{err: store.ErrBusy, dies: true}}})
		i, err := open(t, s).members.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got, err := there.Stay(t.Context(), i); err != nil || !got.Expires.Equal(i.Expires) {
			t.Errorf("after 5 s: %v, %v", got.Expires, err)
		}
		time.Sleep(10 * time.Second)
		if got, err := there.Stay(t.Context(), i); err == nil {
			t.Errorf("after 15 s: %v, want the error of the store", got.Expires)
		}
	})
}
