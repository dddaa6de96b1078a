package journal

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/store"
)

// Writer is what [WriteTogether] needs of a [Journal].
type Writer interface {
	Write(ctx context.Context, prepare Prepare) (Receipt, error)
}

// PrepareTogether is a [Prepare] of several parts. It returns those that the change and the error are of; the others, which have
// their result already, are not written.
type PrepareTogether[P any] func(ctx context.Context, parts []P, lost *store.Conflict) (left []P, c Change, err error)

// errNothing ends a write for which no part is left.
var errNothing = errors.New("journal: nothing to write")

// WriteTogether makes the changes of parts by one write of j, and calls ended with those that were left and with how the write
// ended. What is refused ([Refused]) is written in halves, one after the other, down to single parts: so a part that the store will
// never take does not harm the others. Then ended is called for each piece.
//
// The write has no actor ([WithActor]), since parts of several callers share it: prepare names who did what.
func WriteTogether[P any](
	ctx context.Context, j Writer, parts []P, prepare PrepareTogether[P], ended func(parts []P, r Receipt, err error),
) {
	left := parts
	ctx = WithActor(ctx, "")
	receipt, err := j.Write(ctx, func(ctx context.Context, lost *store.Conflict) (c Change, err error) {
		if left, c, err = prepare(ctx, left, lost); err == nil && len(left) == 0 {
			err = errNothing
		}
		return c, err
	})
	n := len(left)
	switch {
	case n == 0:
	case n > 1 && Refused(err):
		WriteTogether(ctx, j, left[:n/2:n/2], prepare, ended)
		WriteTogether(ctx, j, left[n/2:], prepare, ended)
	default:
		ended(left, receipt, err)
	}
}
