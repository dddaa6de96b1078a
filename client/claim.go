package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"
)

// claim claims tasks for the free slots, until ctx ends; tasks run under inner. It returns an error if the server refuses the
// token or the registration.
func (w *Worker) claim(ctx, inner context.Context) error {
	var asked *call // a claim without a response: it is repeated unchanged, and its response has the tasks of a lost one
	for {
		free := w.take(ctx)
		if free == 0 {
			return nil
		}
		if asked == nil {
			asked = w.claims(free)
		}
		claims, err := w.ask(ctx, *asked)
		if !Temporary(err) {
			asked = nil
		}
		for range free - len(claims) {
			<-w.room
		}
		for i := range claims {
			w.running.Go(func() {
				defer func() { <-w.room }()
				w.run(inner, &claims[i])
			})
		}
		switch status := StatusOf(err); {
		case ctx.Err() != nil:
			return nil
		case status == http.StatusNotFound:
			err = w.register(ctx) // its lease is over
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			return err
		}
		if err != nil {
			w.o.OnError(err)
			_ = sleep(ctx, longPause)
		}
	}
}

// take waits for a free slot, takes all that are free, and returns how many; 0: ctx has ended.
func (w *Worker) take(ctx context.Context) (free int) {
	select {
	case w.room <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	if ctx.Err() != nil {
		<-w.room
		return 0
	}
	for free = 1; free < w.o.Capacity; free++ {
		select {
		case w.room <- struct{}{}:
		default:
			return free
		}
	}
	return free
}

// claims returns a request for at most so many tasks, with a key under which it may be repeated.
func (w *Worker) claims(most int) *call {
	wait := cmp.Or(w.o.Wait, w.third())
	return &call{
		method: http.MethodPost, path: w.path() + "/claims", key: w.c.ownKey(), wait: wait, within: w.third(),
		body: fmt.Appendf(nil, `{"max":%d,"wait":%g}`, min(most, 100), wait.Seconds()),
	}
}

// ask sends a claim, and returns the granted tasks.
func (w *Worker) ask(ctx context.Context, q call) ([]claimed, error) {
	answer, err := w.c.repeat(ctx, q, w.c.patience)
	var granted struct {
		Claims []claimed
		Waited float64 // seconds between the request and the leases
	}
	if err == nil {
		err = answer.decode(&granted)
	}
	if err != nil {
		return nil, fmt.Errorf("client: claim: %w", err)
	}
	waited := min(max(seconds(granted.Waited), 0), time.Since(answer.sent))
	for i := range granted.Claims {
		granted.Claims[i].granted = answer.sent.Add(waited)
	}
	return granted.Claims, nil
}
