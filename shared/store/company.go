package store

import (
	"context"
	"sync/atomic"
)

// company is the key of the value of a context whose reads are asked for together: how many of them are still to come.
type company struct{}

// WithCompany returns a context for so many reads that are about to be asked for side by side. A store may wait for all of them, for a moment,
// and make one request. The number is a hint.
func WithCompany(ctx context.Context, reads int) context.Context {
	left := new(atomic.Int64)
	left.Store(int64(reads))
	return context.WithValue(ctx, company{}, left)
}

// MoreCompany says that more reads will be asked for with ctx; it is nothing without [WithCompany].
func MoreCompany(ctx context.Context, more int) {
	if left := Company(ctx); left != nil {
		left.Add(int64(more))
	}
}

// Company returns how many reads are still to be asked for with ctx, from which a store counts down; nil without [WithCompany].
func Company(ctx context.Context) (left *atomic.Int64) {
	left, _ = ctx.Value(company{}).(*atomic.Int64)
	return left
}
