package groupcommit

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Journal is what [Write] needs of a [journal.Journal].
type Journal interface {
	Write(ctx context.Context, prepare journal.Prepare) (journal.Receipt, error)
}

// Prepare is a [journal.Prepare] of several parts. It returns those that the change and the error are of; the others, which have
// their result already, are not written.
type Prepare[P any] func(ctx context.Context, parts []P, lost *store.Conflict) (left []P, c journal.Change, err error)

// errNothing ends a write for which no part is left.
var errNothing = errors.New("groupcommit: nothing to write")

// Write makes the changes of parts by one write of the journal, and calls ended with those that were left and with how the write
// ended. What the journal refuses ([journal.Refused]) is written in halves, one after the other, down to single parts: so a part
// that the store will never take does not harm the others. Then ended is called for each piece.
//
// The write has no actor ([journal.WithActor]), since parts of several callers share it: prepare names who did what.
func Write[P any](
	ctx context.Context, j Journal, parts []P, prepare Prepare[P], ended func(parts []P, r journal.Receipt, err error),
) {
	left := parts
	ctx = journal.WithActor(ctx, "")
	receipt, err := j.Write(ctx, func(ctx context.Context, lost *store.Conflict) (c journal.Change, err error) {
		if left, c, err = prepare(ctx, left, lost); err == nil && len(left) == 0 {
			err = errNothing
		}
		return c, err
	})
	n := len(left)
	switch {
	case n == 0:
	case n > 1 && journal.Refused(err):
		Write(ctx, j, left[:n/2:n/2], prepare, ended)
		Write(ctx, j, left[n/2:], prepare, ended)
	default:
		ended(left, receipt, err)
	}
}
