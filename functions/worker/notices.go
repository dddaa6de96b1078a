package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

// heard is a notification and the id of the message that it came with.
type heard struct {
	notifier.Notice
	id string
}

// sort parses messages. One that is no notification fails, and comes again until SQS moves it to the dead-letter queue.
func sort(batch []host.Message) (notices []heard, failures []host.Failure) {
	for _, m := range batch {
		notice, err := sqs.Parse(m.Body)
		if err != nil {
			failures = append(failures, host.Failure{ID: m.ID, Err: err})
			continue
		}
		notices = append(notices, heard{notice, m.ID})
	}
	return notices, failures
}

// hearer runs tasks for notifications.
type hearer struct {
	runner   *worker.Runner
	by       queue.Claimer
	notifier notifier.Notifier
	log      *slog.Logger
}

// hear runs tasks for notifications to their ends, at once or, for one that comes early, from its time on. One that finds no task
// succeeds. The failures are notifications that could neither be followed nor sent again.
func (h *hearer) hear(ctx context.Context, notices []heard) (failures []host.Failure) {
	if len(notices) == 0 {
		return nil
	}
	if deadline, limited := ctx.Deadline(); limited {
		within, cancel := context.WithDeadline(ctx, deadline.Add(-spare))
		defer cancel()
		ctx = within
	}
	if err := h.follow(ctx, notices); err != nil {
		return h.notifyAgain(ctx, notices, err)
	}
	return nil
}

// follow runs tasks for notifications. A panic becomes its error.
func (h *hearer) follow(ctx context.Context, notices []heard) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("worker: panic: %v\n%s", cause, debug.Stack())
		}
	}()
	var early []notifier.Notice
	for now, i := time.Now(), 0; i < len(notices); i++ {
		if notices[i].At.After(now) {
			early = append(early, notices[i].Notice)
		}
	}
	_, err = h.runner.RunBatch(ctx, h.by, len(notices)-len(early), early...)
	return err
}

// notifyAgain sends notifications that could not be followed once more, for some seconds from now, and returns those that could not
// be sent either. A message that is handed back instead is invisible until its visibility timeout is over, which is longer than
// the longest run of a worker. Those that were sent once more already are left to the sweep, which notifies each minute of what is
// ready: so the same messages do not go round for as long as an outage lasts.
func (h *hearer) notifyAgain(ctx context.Context, notices []heard, cause error) (failures []host.Failure) {
	var again []notifier.Notice
	at := time.Now().Add(2*time.Second + rand.N(8*time.Second)) // at random, apart from others that failed at the same time
	for _, notice := range notices {
		if !notice.Again {
			again = append(again, notifier.Notice{Queue: notice.Queue, At: at, Again: true})
		}
	}
	h.log.Warn("tasks could not be claimed; notices are sent once more, then the sweep sends its own", "notices", len(notices), "again", len(again), "error", cause)
	if err := h.notifier.Notify(context.WithoutCancel(ctx), again...); err != nil {
		for _, notice := range notices {
			failures = append(failures, host.Failure{ID: notice.id, Err: err})
		}
	}
	return failures
}
