package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// dated is a store that other processes use too, with a date that may be off, slow, or unavailable.
type dated struct {
	store.Store
	alone bool
	off   time.Duration
	slow  time.Duration
	err   error
	busy  int // how often it is busy yet
	asked int
}

func (d *dated) Exclusive() bool { return d.alone }

func (d *dated) Date(context.Context) (time.Time, error) {
	d.asked++
	time.Sleep(d.slow)
	date := time.Now().Add(d.off).Truncate(time.Second)
	time.Sleep(d.slow)
	if d.busy > 0 {
		d.busy--
		return date, store.ErrBusy
	}
	return date, d.err
}

// wall is a clock that can be set.
type wall struct{ ahead time.Duration }

func (w *wall) now() time.Time { return time.Now().Add(w.ahead) }

func open() (*clock.Watch, *dated, *wall) {
	d, w := &dated{Store: memory.New(memory.Options{})}, &wall{}
	return clock.Open(d, clock.Options{Now: w.now}), d, w
}

func TestAClockThatIsOffIsRefused(t *testing.T) {
	t.Parallel()
	for ahead, refused := range map[time.Duration]bool{
		0: false, 4 * time.Second: false, -4 * time.Second: false,
		7 * time.Second: true, -7 * time.Second: true, 30 * time.Second: true, -15 * time.Minute: true, 24 * time.Hour: true,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, d, w := open()
				w.ahead, d.slow = ahead, 700*time.Millisecond
				err := c.Check(t.Context())
				skew, off := errors.AsType[*clock.Skew](err)
				if off != refused || off && (skew.Offset-ahead).Abs() > 3*time.Second {
					t.Fatalf("Check = %v, want an error %v", err, refused)
				}
				if now := time.Until(c.Now()).Abs(); now > clock.Tolerance {
					t.Errorf("Now is off by %v", now)
				}
				w.ahead = 0
				if err := c.Check(t.Context()); err != nil {
					t.Errorf("Check of a clock that was set right = %v", err)
				}
			})
		})
	}
}

// A comparison is valid for a minute, or until the clock jumps.
func TestTheStoreIsAskedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d, w := open()
		for range 10 * 60 {
			if err := c.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if d.asked > 10 {
			t.Errorf("the store was asked %d times in ten minutes", d.asked)
		}
		w.ahead = 15 * time.Minute
		if err := c.Check(t.Context()); err == nil {
			t.Error("Check = nil after the clock has jumped")
		}
		d.off = w.ahead // the machine was asleep, and so was the monotonic clock: both clocks have advanced
		w.ahead += 10 * time.Second
		d.off = w.ahead
		if err := c.Check(t.Context()); err != nil {
			t.Errorf("Check = %v after the clock has jumped to what the store says", err)
		}
	})
}

// If the store is unavailable, a clock that was right is still trusted; one that has jumped, or was never compared, is
// not.
func TestAStoreThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d, w := open()
		d.err = store.ErrUnavailable
		if err := c.Check(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Check without any comparison = %v, want the store's error", err)
		}
		d.err = nil
		if err := c.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.err = store.ErrUnavailable
		time.Sleep(5 * time.Minute)
		if err := c.Check(t.Context()); err != nil {
			t.Errorf("Check of a clock that has gone evenly = %v", err)
		}
		w.ahead = time.Minute
		if err := c.Check(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Check after a jump = %v, want the store's error", err)
		}
	})
}

// A store that is busy is asked again, but not for ever, and only while nothing is known.
func TestAStoreThatIsBusyIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d, _ := open()
		d.busy = 100
		if err := c.Check(t.Context()); !errors.Is(err, store.ErrBusy) || d.asked > 10 {
			t.Errorf("Check of a store that stays busy = %v after %d calls, want its error and 10 calls at most", err, d.asked)
		}
		d.busy = 3
		if err := c.Check(t.Context()); err != nil {
			t.Errorf("Check of a store that is busy for a moment = %v", err)
		}
		time.Sleep(2 * time.Minute)
		d.busy, d.asked = 1, 0
		if err := c.Check(t.Context()); err != nil || d.asked != 1 {
			t.Errorf("Check of a clock that is known = %v, %d calls, want one", err, d.asked)
		}
	})
}

// The clock of a process that has the store to itself is the only one. Jumps are noticed, at no call of the store.
func TestAClockAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d, w := open()
		d.alone = true
		time.Sleep(time.Hour)
		w.ahead = -2 * time.Second
		if steady := c.Steady(); steady < time.Hour {
			t.Errorf("steady for %v after a small step", steady)
		}
		for _, ahead := range []time.Duration{15 * time.Minute, 0} {
			w.ahead = ahead
			if steady := c.Steady(); steady != 0 {
				t.Errorf("steady for %v after a jump", steady)
			}
			time.Sleep(30 * time.Second)
			if steady := c.Steady(); steady != 30*time.Second {
				t.Errorf("steady for %v, 30 s after a jump", steady)
			}
		}
		if err := c.Check(t.Context()); err != nil || d.asked != 0 {
			t.Errorf("Check = %v, with %d calls of the store", err, d.asked)
		}
	})
}
