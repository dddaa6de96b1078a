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

// Tolerance is by how much a process's clock may differ from the store's date, which may be in whole seconds. A greater
// step of the clock counts as a jump.
const Tolerance = 5 * time.Second

// every is how long a comparison with the store's date is valid, unless the clock jumps.
const every = time.Minute

// precision is how much later than a store's date its real time may be.
const precision = time.Second

// Skew is the error of a process whose clock is off by more than [Tolerance].
type Skew struct {
	Offset time.Duration // how far the clock is ahead of the store's date, at least; negative: behind
}

// Error returns the difference and how to mend it.
func (s *Skew) Error() string {
	way := "ahead of"
	if s.Offset < 0 {
		way = "behind"
	}
	return fmt.Sprintf("the clock of this process is %v %s the store's: set it right, by NTP for one; until then the process "+
		"decides nothing by time", s.Offset.Abs().Round(time.Millisecond), way)
}

// Options are the options of a Watch. The zero value of each field means its default.
type Options struct {
	Now func() time.Time // the clock; default time.Now
	Log *slog.Logger     // default: discards
	// Compared is called with the offset after each comparison; 0 means none that can be told. Default: none.
	Compared func(offset time.Duration)
}

// Watch compares this process's clock with the date of its store: at the first use, then at most once a minute, and
// whenever the clock has jumped relative to the monotonic clock. A nil Watch trusts the machine's clock. Its methods may
// be called concurrently.
type Watch struct {
	store     store.Store
	o         Options
	began     time.Time
	comparing chan struct{} // holds a token while no comparison runs

	mu     sync.Mutex
	last   reading       // of the last comparison or jump; of a process alone, renewed each minute
	known  bool          // whether offset is known
	offset time.Duration // by the last comparison
	jumped time.Duration // the time of the last jump, on the monotonic clock
}

// reading holds both clocks at one moment.
type reading struct {
	wall time.Time
	mono time.Duration
}

// drift returns how much further the wall clock advanced than the monotonic one since an earlier reading.
func (r reading) drift(since reading) time.Duration {
	return r.wall.Sub(since.wall) - (r.mono - since.mono)
}

// Open returns a Watch over a store. It does not call the store yet.
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

// Now returns the time: the clock's, less its known [Watch.Offset].
func (w *Watch) Now() time.Time {
	if w == nil {
		return time.Now()
	}
	return w.o.Now().Add(-w.Offset())
}

// Offset returns how far the clock is known to be ahead of the store's date, negative if it is behind; 0 within
// [Tolerance].
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

// Check returns nil if the clock may be used for decisions about others. Otherwise the error is a [Skew], or the store's
// error if the date could not be read and either nothing was known or the clock had jumped. It calls the store at most
// once a minute; never if the process has the store to itself.
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

// Steady returns how long the clock has advanced evenly, as far as this process has seen it: the time since its last jump.
// A jump is over once the store's date has shown the clock to be right: a machine that sleeps between two looks jumps before
// each.
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

// look checks whether the clock has jumped. It reports whether an offset is known, and whether it is still valid.
func (w *Watch) look() (known, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.read()
	if drift := now.drift(w.last); drift.Abs() > Tolerance {
		if w.alone() { // with others the next comparison logs it
			w.o.Log.Warn("the clock of this process has jumped", "by", drift)
		}
		w.jumped, w.known, w.last = now.mono, false, now
	}
	age := now.mono - w.last.mono
	if w.alone() && age > every { // drift over a long time is no jump
		w.last = now
	}
	return w.known, w.known && age <= every
}

// compare reads the store's date. If an offset is known, compare does not wait for a concurrent comparison, and ignores
// errors.
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
		return nil // a concurrent comparison was faster
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

// settle records the result of a comparison: how far off the clock is at least, from the readings before and after the
// store's call.
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
	if after.drift(before).Abs() > Tolerance { // it has jumped during the call
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
