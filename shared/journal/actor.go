package journal

import (
	"context"

	"github.com/millrace/millrace/shared/event"
)

// actorKey is the key of an actor's name in a context.
type actorKey struct{}

// WithActor returns ctx for what the bearer of the token of that name does: the events of writes under it have the name as their
// By, unless they have another. An empty name ends that, for what is done on nobody's behalf, such as upkeep that a request
// happens to do.
func WithActor(ctx context.Context, name string) context.Context {
	if Actor(ctx) == name {
		return ctx
	}
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor returns the name that ctx has by [WithActor]; empty: it has none.
func Actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}

// settle gives an event that has its id what is still open of its origin.
func settle(e *event.Event, actor string) {
	if n := e.Cause.Before(); n > 0 {
		e.Cause = event.CausedBy(e.ID - event.ID(n))
	}
	if e.By == "" {
		e.By = actor
	}
}
