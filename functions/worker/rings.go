package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/bell/sqs"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

// heard is a ring and the message that it came with.
type heard struct {
	bell.Ring
	id string
}

// sort tells rings from what is none, which comes again until SQS puts it aside.
func sort(batch []host.Message) (rings []heard, failures []host.Failure) {
	for _, m := range batch {
		ring, err := sqs.Parse(m.Body)
		if err != nil {
			failures = append(failures, host.Failure{ID: m.ID, Err: err})
			continue
		}
		rings = append(rings, heard{ring, m.ID})
	}
	return rings, failures
}

// hearer runs tasks for rings.
type hearer struct {
	runner *worker.Runner
	by     queue.Claimer
	bell   bell.Bell
	log    *slog.Logger
}

// hear runs tasks for rings to their ends, at once or from the time of a ring that comes early. Rings that find nothing have done
// their duty. The failures are rings that nobody could follow, nor ring afresh.
func (h *hearer) hear(ctx context.Context, rings []heard) (failures []host.Failure) {
	if deadline, limited := ctx.Deadline(); limited {
		within, cancel := context.WithDeadline(ctx, deadline.Add(-spare))
		defer cancel()
		ctx = within
	}
	if err := h.follow(ctx, rings); err != nil {
		return h.ringAgain(ctx, rings, err)
	}
	return nil
}

// follow runs tasks for rings. A panic becomes its error.
func (h *hearer) follow(ctx context.Context, rings []heard) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("worker: panic: %v\n%s", cause, debug.Stack())
		}
	}()
	var early []bell.Ring
	for now, i := time.Now(), 0; i < len(rings); i++ {
		if rings[i].At.After(now) {
			early = append(early, rings[i].Ring)
		}
	}
	_, err = h.runner.RunBatch(ctx, h.by, len(rings)-len(early), early...)
	return err
}

// ringAgain rings afresh, some seconds from now, for rings that could not be followed, and returns those that could not be rung
// for either. A message that is handed back instead is not seen before its visibility timeout has passed, which is longer than
// anything that a worker may do. What was rung afresh already is left to the sweep, which rings each minute for what is
// ready: so an outage does not have the same messages go round until it ends.
func (h *hearer) ringAgain(ctx context.Context, rings []heard, cause error) (failures []host.Failure) {
	var again []bell.Ring
	at := time.Now().Add(2*time.Second + rand.N(8*time.Second)) // apart from others that failed with it
	for _, ring := range rings {
		if !ring.Again {
			again = append(again, bell.Ring{Queue: ring.Queue, At: at, Again: true})
		}
	}
	h.log.Warn("tasks could not be claimed; rings are rung once more, then the sweep does", "rings", len(rings), "again", len(again), "error", cause)
	if err := h.bell.Ring(context.WithoutCancel(ctx), again...); err != nil {
		for _, ring := range rings {
			failures = append(failures, host.Failure{ID: ring.id, Err: err})
		}
	}
	return failures
}
