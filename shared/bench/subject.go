package bench

import (
	"context"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// subject is the journal that is measured, in this process or over HTTP.
type subject interface {
	emit(ctx context.Context, events []event.Event) error
	read(ctx context.Context, after event.ID) (events int, last event.ID, err error)
	newest(ctx context.Context) (event.ID, error)
	follow(ctx context.Context, after event.ID, each func([]event.Event)) error
}

// engine is a journal in this process.
type engine struct{ *journal.Journal }

// pageBytes bounds one read, as the API does.
const pageBytes = 4 << 20

func (e engine) emit(ctx context.Context, events []event.Event) error {
	_, err := e.Emit(ctx, events, nil)
	return err
}

func (e engine) read(ctx context.Context, after event.ID) (int, event.ID, error) {
	answer, err := e.ReadAfter(ctx, journal.Request{After: after, MaxBytes: pageBytes})
	if n := len(answer.Events); n > 0 {
		return n, answer.Events[n-1].ID, err
	}
	return 0, after, err
}

// newest returns 0: the store is fresh.
func (e engine) newest(context.Context) (event.ID, error) { return 0, nil }

func (e engine) follow(ctx context.Context, after event.ID, each func([]event.Event)) error {
	for answer, err := range e.Follow(ctx, journal.Request{After: after}, time.Minute) {
		if err != nil {
			return err
		}
		each(answer.Events)
	}
	return nil
}

// server is a journal behind HTTP.
type server struct{ *client.Client }

// dialed calls do with a client that repeats no request, so that only first attempts are measured.
func dialed(url, token string, do func(subject) error) error {
	c, err := client.New(client.Options{URL: url, Token: token, Patience: -1})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(server{c})
}

func (s server) emit(ctx context.Context, events []event.Event) error {
	_, err := s.Emit(ctx, events)
	return err
}

func (s server) read(ctx context.Context, after event.ID) (int, event.ID, error) {
	answer, err := s.Read(ctx, client.Query{After: after})
	return len(answer.Events), answer.Last, err
}

func (s server) newest(ctx context.Context) (event.ID, error) {
	answer, err := s.Read(ctx, client.Query{Limit: -1})
	return answer.Last, err
}

func (s server) follow(ctx context.Context, after event.ID, each func([]event.Event)) error {
	for step, err := range s.Follow(ctx, client.Query{After: after}) {
		if err != nil {
			return err
		}
		each(step.Events)
	}
	return nil
}
