package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Tolerance is by how much a process's clock may differ from the store's date, which may be in whole seconds. It is also what
// counts as a jump.
const Tolerance = 5 * time.Second

// every is how long a comparison with the store's date holds, unless the clock jumps.
const every = time.Minute

// precision is how much later than a store's date it may be really.
const precision = time.Second

// Skew is the error of a process whose clock is off.
type Skew struct {
	Offset time.Duration // how far it is ahead of the store's date, at least; negative: behind
}

// Error names the difference.
func (s *Skew) Error() string {
	way := "ahead of"
	if s.Offset < 0 {
		way = "behind"
	}
	return fmt.Sprintf("the clock of this process is %v %s the store's: set it right, by NTP for one; until then the process "+
		"decides nothing by time", s.Offset.Abs().Round(time.Millisecond), way)
}

// Options of a Watch. The zero value of each field means its default.
type Options struct {
	Now      func() time.Time           // the clock; default time.Now
	Log      *slog.Logger               // default: discards
	Compared func(offset time.Duration) // is told of each comparison, 0 being within what can be told apart; default: nobody is
}

// Watch compares this process's clock with the date of its store: when it is asked first, then once a minute at most, and whenever
// the clock has jumped, which the monotonic clock shows. A nil Watch trusts the clock, and returns the machine's. Its methods may
// be called concurrently.
type Watch struct {
	store     store.Store
	o         Options
	began     time.Time
	comparing chan struct{} // holds a token while nobody compares

	mu     sync.Mutex
	last   reading       // of the last comparison, or since when a clock without another to compare it with runs evenly
	known  bool          // offset is
	offset time.Duration // by the last comparison
	jumped time.Duration // when the clock jumped last, on the monotonic clock
}

// reading is both clocks at one moment.
type reading struct {
	wall time.Time
	mono time.Duration
}

// drift returns how much further the wall clock went than the monotonic one since an earlier reading.
func (r reading) drift(since reading) time.Duration {
	return r.wall.Sub(since.wall) - (r.mono - since.mono)
}

// Open returns a Watch over a store. Nothing is asked of the store yet.
func Open(s store.Store, o Options) *Watch {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Compared == nil {
		o.Compared = func(time.Duration) {}
	}
	w := &Watch{store: s, o: o, began: time.Now(), comparing: make(chan struct{}, 1), jumped: math.MinInt64 / 2}
	w.comparing <- struct{}{}
	w.last = w.read()
	return w
}

func (w *Watch) read() reading { return reading{w.o.Now().Round(0), time.Since(w.began)} }

// Now returns the time: the clock's, less what it is known to be off by.
func (w *Watch) Now() time.Time {
	if w == nil {
		return time.Now()
	}
	return w.o.Now().Add(-w.Offset())
}

// Offset returns how far the clock is known to be ahead of the store's date, negative where it is behind; 0 within [Tolerance].
func (w *Watch) Offset() time.Duration {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.offset.Abs() <= Tolerance {
		return 0
	}
	return w.offset
}

// Check returns nil if the clock may decide for others. Otherwise the error is a [Skew], or says that the store could not be asked
// when nothing was known, or when the clock had jumped. It costs a call of the store once a minute at most; of one that a
// process has to itself, none.
func (w *Watch) Check(ctx context.Context) error {
	if w == nil || w.alone() {
		return nil
	}
	if known, fresh := w.look(); !fresh {
		if err := w.compare(ctx, known); err != nil {
			return err
		}
	}
	if offset := w.Offset(); offset != 0 {
		return &Skew{Offset: offset}
	}
	return nil
}

// Steady returns for how long the clock has gone evenly, as far as this process has seen it: since it jumped last. A jump is over
// once the store's date has shown the clock to be right: a machine that sleeps between two looks jumps before each.
func (w *Watch) Steady() time.Duration {
	if w == nil {
		return math.MaxInt64
	}
	if compared, _ := w.look(); compared && w.Offset() == 0 {
		return math.MaxInt64
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.began) - w.jumped
}

func (w *Watch) alone() bool { return w.store.Exclusive() }

// look sees whether the clock has jumped, and reports whether anything is known of it, and whether that still holds.
func (w *Watch) look() (known, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.read()
	if drift := now.drift(w.last); drift.Abs() > Tolerance {
		if w.alone() { // others are compared anew, and that says it
			w.o.Log.Warn("the clock of this process has jumped", "by", drift)
		}
		w.jumped, w.known, w.last = now.mono, false, now
	}
	age := now.mono - w.last.mono
	if w.alone() && age > every { // what is drift over a long time is no jump
		w.last = now
	}
	return w.known, w.known && age <= every
}

// compare asks the store. While another does, who knows something already goes by that, and so does who cannot ask it.
func (w *Watch) compare(ctx context.Context, known bool) error {
	if known {
		select {
		case <-w.comparing:
		default:
			return nil
		}
	} else {
		select {
		case <-w.comparing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { w.comparing <- struct{}{} }()
	known, fresh := w.look()
	if fresh {
		return nil // by who was quicker
	}
	before, date, err := w.ask(ctx)
	for try := 0; !known && errors.Is(err, store.ErrBusy) && try < busyTries && wait(ctx, firstPause<<try); try++ {
		before, date, err = w.ask(ctx)
	}
	switch {
	case err != nil && known:
		return nil
	case err != nil:
		return fmt.Errorf("compare the clock with the store's date: %w", err)
	}
	w.settle(before, w.read(), date)
	return nil
}

// A store that is busy is asked again before nothing may be decided: for two seconds in all.
const (
	busyTries  = 8
	firstPause = 8 * time.Millisecond // the next is twice as long, and so on
)

// ask returns the store's date, and the reading when it was asked.
func (w *Watch) ask(ctx context.Context) (before reading, date time.Time, err error) {
	before = w.read()
	date, err = w.store.Date(ctx)
	return before, date, err
}

// wait waits; false: ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// settle notes what a comparison has shown: how far off the clock is at least, given when the store was asked and when it
// answered.
func (w *Watch) settle(before, after reading, date time.Time) {
	var offset time.Duration
	if ahead := before.wall.Sub(date) - precision; ahead > 0 {
		offset = ahead
	} else if behind := after.wall.Sub(date); behind < 0 {
		offset = behind
	}
	w.mu.Lock()
	was := w.offset.Abs() > Tolerance
	w.last, w.known, w.offset = after, true, offset
	if after.drift(before).Abs() > Tolerance { // it has jumped meanwhile
		w.known = false
	}
	w.mu.Unlock()
	w.o.Compared(offset)
	switch off := offset.Abs() > Tolerance; {
	case off:
		w.o.Log.Error("the clock of this process is off, so that it decides nothing by time: it makes no ticks, ends no leases, starts no tasks",
			"offset", offset)
	case was:
		w.o.Log.Info("the clock of this process is right again")
	}
}
