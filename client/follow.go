package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// followWait is how long a follower asks the server to wait for an event by default.
const followWait = time.Minute

// Step is what one read of a follower returns.
type Step struct {
	// Events are the next ones that matched, in rising order of their ids; perhaps none.
	Events []event.Event

	// Snapshot is not nil where events were evicted before the follower read them: it replaces all that the follower knew,
	// and the next events are those after its EventID.
	Snapshot *Snapshot

	// Last is the EventId up to which the follower has read: a later one with it as Query.After misses and repeats nothing.
	Last event.ID
}

// Follow yields every event that the query selects, each once and in order, until ctx ends or the caller breaks the loop. It
// outlives failures of the network, restarts of the server and, by a new snapshot, the eviction of events; only the first
// response must come before the client's patience ends. The one error it yields, as its last, is a refusal that
// is not [Temporary], the end of patience before the first response, or the end of ctx.
//
// Where the server streams, events come in one response that lasts for Query.Wait; elsewhere each step is a request. Where a request
// that waits costs as one that works, as on Lambda, the server does not wait: while nothing comes, the follower pauses between requests,
// for a second at first, then for longer, up to Query.Wait and 30 s; see [Options].HoldPolls.
func (c *Client) Follow(ctx context.Context, q Query) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if q.Wait == 0 {
			q.Wait = followWait
		}
		f := &follower{client: c, query: q, patience: c.patience, yield: yield}
		if err := f.run(ctx); !errors.Is(err, errEnough) {
			yield(Step{}, fmt.Errorf("client: follow after %d: %w", f.query.After, err))
		}
	}
}

// follower is a loop of Follow.
type follower struct {
	client   *Client
	query    Query // After is how far it has come
	patience time.Duration
	yield    func(Step, error) bool

	brief, got bool // of the newest request: the server has not waited; it has brought something
}

// run goes on until there is an error, which is errEnough where the caller has broken the loop.
func (f *follower) run(ctx context.Context) error {
	began := time.Now()
	var quiet idle
	for pause := newPause(); ; {
		before := f.query.After
		f.brief, f.got = false, false
		err := f.request(ctx)
		if err == nil || f.query.After != before {
			pause, began = newPause(), time.Now()
		}
		if f.got || !f.brief {
			quiet = idle{}
		} else if err == nil {
			err = sleep(ctx, quiet.next(f.query.Wait))
		}
		if err == nil {
			continue
		}
		wait := pause.next(err)
		if ctx.Err() != nil || !Temporary(err) || wait > f.client.atMost(f.patience, err)-time.Since(began) {
			return err
		}
		f.client.onRetry(err, wait)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// request makes one request, and yields what comes of it.
func (f *follower) request(ctx context.Context) error {
	if f.query.Limit < 0 { // a stream goes forward
		answer, err := f.client.read(ctx, f.query, f.patience)
		if err != nil {
			return err
		}
		return f.hand(ctx, answer)
	}
	h, err := f.client.listen(ctx, f.query)
	if err != nil {
		return err
	}
	f.patience, f.brief = endless, h.brief
	stream := h.stream
	if stream == nil {
		return f.hand(ctx, h.answer)
	}
	defer stream.close()
	silent := true
	for {
		answer, err := stream.next()
		switch {
		case errors.Is(err, io.EOF) && silent:
			return f.hand(ctx, answer)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		stream.lost.Stop() // it is not silent because the caller takes its time
		if err := f.hand(ctx, answer); err != nil || answer.Torn {
			return err
		}
		silent = false
	}
}

// hand yields a step, with a snapshot where the journal is torn.
func (f *follower) hand(ctx context.Context, answer Answer) error {
	f.patience = endless
	step := Step{Events: answer.Events, Last: answer.Last}
	if answer.Torn {
		snapshot, err := f.client.snapshot(ctx, f.query.Path, nil, endless)
		if err != nil {
			return err
		}
		step = Step{Snapshot: &snapshot, Last: snapshot.EventID}
	}
	if !f.yield(step, nil) {
		return errEnough
	}
	f.got = f.got || len(step.Events) > 0 || step.Snapshot != nil
	f.query.After = step.Last
	return nil
}
