package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Consumer handles the events of a stream one after the other, and acknowledges each that was handled. Client, ID and Stream
// are required.
type Consumer struct {
	Client *Client // sends the requests
	ID     string  // a UUID, such as [KeptID] returns
	Stream string  // the stream's name
	Name   string  // of the events; empty: all, in the stream's order
	Limit  int     // events per request, at most 1,000; 0: the server's default, 100

	// OnFailure, if set, is called for each failure of the handler, before the event is handled again after wait.
	OnFailure func(e *StreamEvent, err error, wait time.Duration)
}

// consumeWait is how long the server is asked to wait for events.
const consumeWait = 60 * time.Second

// Run handles events until ctx ends or a request is refused for good; it returns why it ended. When handle returns nil, the
// event is acknowledged; otherwise the same event is handled again, after a pause that grows to 2 s: no event is left out.
// An event may be handled twice where the acknowledgement was lost, so that handle should be idempotent.
func (c *Consumer) Run(ctx context.Context, handle func(context.Context, *StreamEvent) error) error {
	q := StreamQuery{Stream: c.Stream, Consumer: c.ID, Name: c.Name, Limit: c.Limit, Wait: consumeWait}
	outage := newPause()
	var quiet idle
	for {
		events, brief, err := c.Client.readStream(ctx, q, true)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			outage = newPause()
			if len(events) > 0 || !brief {
				quiet = idle{}
				err = c.handle(ctx, events, handle)
			} else {
				err = sleep(ctx, quiet.next(q.Wait))
			}
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil || !Temporary(err) {
			return err
		}
		if err := sleep(ctx, outage.next(err)); err != nil { // the outage exceeds the client's patience, but not the consumer's
			return err
		}
	}
}

func (c *Consumer) handle(ctx context.Context, events []StreamEvent, handle func(context.Context, *StreamEvent) error) error {
	for i := range events {
		if err := c.one(ctx, &events[i], handle); err != nil {
			return err
		}
		_, err := c.Client.Acknowledge(ctx, c.ID, c.Stream, events[i].Event.ID)
		if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusConflict {
			return nil // the offset was moved meanwhile: read again from there
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one handles an event until that succeeds.
func (c *Consumer) one(ctx context.Context, e *StreamEvent, handle func(context.Context, *StreamEvent) error) error {
	for pause := newPause(); ; {
		err := handle(ctx, e)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("client: handle %s: %w", e.Event.ID, err)
		}
		wait := pause.next(err)
		if c.OnFailure != nil {
			c.OnFailure(e, err, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}
