package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// Failure returns what callers are told of an error that the store has returned, so that they need not know the store's own:
// [ErrTooLarge] or [ErrInvalid] of a write that no repetition gets through, [ErrUnavailable] of everything else. Nil and the
// end of a context stay what they are. doing says what was tried, such as "read a task".
func Failure(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || Refused(err) {
		return err
	}
	kind := ErrUnavailable
	switch {
	case errors.Is(err, store.ErrTooLarge):
		kind = ErrTooLarge
	case errors.Is(err, store.ErrInvalid):
		kind = ErrInvalid
	}
	return fmt.Errorf("%w: %s: %w", kind, doing, err)
}

// Refused reports whether a write was refused for what it holds: it has changed nothing, and making it again changes nothing
// either.
func Refused(err error) bool { return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalid) }
