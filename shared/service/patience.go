package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// How long a start repeats what a busy or unavailable store refuses, and the pauses between.
const (
	startFor   = 15 * time.Second
	firstPause = 200 * time.Millisecond
	lastPause  = 2 * time.Second
)

// patiently calls do until it succeeds, fails for another reason than a store that is busy or away, or startFor is over: a
// process does not end for one call that meets such a moment.
func patiently(ctx context.Context, log *slog.Logger, doing string, do func() error) error {
	until := time.Now().Add(startFor)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do()
		if !passes(err) || time.Now().Add(pause).After(until) {
			return err
		}
		log.Warn("the store is busy or away; it is tried again", "doing", doing, "error", err, "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// passes reports whether an error may be gone at the next try.
func passes(err error) bool {
	for _, passing := range []error{
		store.ErrBusy, store.ErrUnavailable, store.ErrUnknown, journal.ErrUnavailable, journal.ErrUnknownOutcome,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
