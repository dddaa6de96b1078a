package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/store"
)

// Failure wraps an error of the store, so that callers need not know the store's errors: in [ErrTooLarge] or [ErrInvalid] if
// the store will never take the write, otherwise in [ErrUnavailable]. Nil, the end of a context and what is wrapped already
// are returned as they are. doing says what was tried, such as "read a task".
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

// Refused reports whether an error is [ErrTooLarge] or [ErrInvalid]: the write was refused for what it holds, has changed
// nothing, and will be refused again.
func Refused(err error) bool { return errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalid) }
