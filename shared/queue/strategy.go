package queue

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// strategy is how a process knows what the store holds, and how its claims keep off others. There are two, and Open chooses one:
// [alone] for a process that has the store to itself, which keeps what it has read and written in memory; [shared] for one of
// many, which reads what it decides by and marks what it is about to start.
type strategy interface {
	// view returns what a claim sees of its queue.
	view(c *claim) claimView

	// promote makes entries ready that have fallen due, and returns when the next one falls due; zero if none does.
	promote(ctx context.Context) (next time.Time, err error)

	// removesLater reports whether the ready entries of a queue's tasks are removed after the write that starts them, by [strategy.remove]:
	// where each operation of a write costs twice what one by itself does, and few claims meet that would read them until then.
	removesLater(queue string) bool

	// remove removes the ready entries of tasks that were started. Until then, and if that fails, they are stale: whoever meets one
	// removes it.
	remove(ctx context.Context, started []layout.Place)

	// idCondition returns the condition of the item of a task with a new id.
	idCondition() store.Condition

	// lookOut looks for tasks that other processes make ready, until stop is called.
	lookOut() (stop context.CancelFunc)

	// stored notes an entry that was stored, and returns the notification that it needs, if it needs one.
	stored(p *layout.Place) (notice notifier.Notice, needed bool)

	// precedes reports whether nothing that is ready in the lines comes before a rank, as far as this process knows without a read that
	// a claim would make anyway.
	precedes(ctx context.Context, lines []layout.Line, rank string) bool

	// readEarly begins to read what a claim of n tasks by an instance decides by, the instance's slots too if they are asked for; nil if
	// that is known without.
	readEarly(ctx context.Context, by *Claimer, n int, slots bool) *Early

	// readInPlace begins to read what is decided by when a task of a line is added, and may be started for an instance that waits; nil if
	// that is known without.
	readInPlace(ctx context.Context, by *Claimer, l layout.Line) *Early

	// delayed notes that a claim has met a ready entry that may be started only at a time, in microseconds since 1970: that of a task
	// that keeps its place in an ordered queue while it waits for its next attempt. Claimers of the line are notified then.
	delayed(l layout.Line, at int64)

	// doubt forgets what is kept of the store's content, so that it is read again: a write may have been applied or not, or what
	// a claim has picked was not dealt with.
	doubt()
}

// claimView is what one claim sees of its queue.
type claimView interface {
	// pick returns up to n entries of the claim's lines that no other claimer is starting, the least ranks first. Ranks are compared
	// over all of these lines. It is for queues that are not ordered.
	pick(ctx context.Context, n int) ([]layout.Place, error)

	// precedes reports whether nothing that is ready in the claim's lines comes before a rank, for certain.
	precedes(ctx context.Context, rank string) bool

	// putBack lets other claims find entries that were picked and not tried; full says that a limit keeps all of them.
	putBack(ctx context.Context, left []layout.Place, full bool)

	// settled ends the claim of picked entries, and lets this process's claims find those again that were left, whatever becomes of them.
	settled(picks, left []layout.Place)

	// keyFull notes that a concurrency key has no free slot.
	keyFull(key string)

	// rival notes that another claimer was quicker.
	rival()

	// handOver notifies other claimers if the claim leaves entries to them that it has read.
	handOver(ctx context.Context)

	// contested returns the limits whose slots other claims may take between the claim's preparation and its write.
	contested() []string

	// readOrder reads the count of an ordered queue's starts, before anything else is read that a start rests on.
	readOrder(ctx context.Context) error

	// countStart returns the operation that counts a start of an ordered queue, under the condition that the count is as it was
	// read; none if claims of other processes cannot come between.
	countStart() []store.Op
}

// doubtIf makes the strategy doubt what it knows if err leaves the outcome of a write open.
func (q *Queue) doubtIf(err error) {
	if isOpen(err) {
		q.strategy.doubt()
	}
}
