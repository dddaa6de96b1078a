package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// holds are the times in which an operator kept tasks from being started, by the name in the member held of the lines.
type holds struct {
	mu  sync.Mutex
	all map[string]spans
}

func (h *holds) add(name string, s span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]spans{}
	}
	h.all[name] = append(h.all[name], s)
}

// operate holds tasks now and then, each for a while, until ctx ends; then all are let go.
func (k *clients) operate(ctx, calls context.Context, h *holds) {
	handler := func(name, rule string) func(context.Context, bool) error {
		return func(ctx context.Context, on bool) error {
			return k.c.SetRule(ctx, client.HandlerName{Canvas: "c", Space: "S", Name: name}, rule, on)
		}
	}
	acts := map[string]func(context.Context, bool) error{
		"pause":     handler("paused", "pause"),
		"block":     handler("blocked", "block"),
		"suspend":   func(ctx context.Context, on bool) error { return k.c.SuspendQueue(ctx, "held", on) },
		"sometimes": func(ctx context.Context, on bool) error { return k.c.SuspendSchedule(ctx, "sometimes", on) },
	}
	var group sync.WaitGroup
	defer group.Wait()
	for name, act := range acts {
		group.Go(func() {
			for wait(ctx, time.Second+rand.N(5*time.Second)) {
				from := micros()
				on := !k.failed(act(calls, true), name)
				wait(ctx, 500*time.Millisecond+rand.N(3*time.Second))
				if off := !k.failed(act(calls, false), "lift: "+name); on && off {
					h.add(name, span{from, micros()})
				}
			}
		})
	}
}

// stop adds jobs that would take long, and stops or removes them, or lets them be.
func (k *clients) stop(ctx context.Context) {
	n := client.NewJob{Topic: "hosts/long", Properties: fmt.Appendf(nil, `{"work":"long","ms":%d}`, longestStop.Milliseconds())}
	job, _, err := k.c.AddJob(ctx, n)
	if k.failed(err, "add a long job") {
		return
	}
	k.ledger.acknowledged(job.ID, "")
	time.Sleep(rand.N(2 * time.Second))
	if chance(0.3) {
		err = k.c.RemoveJob(ctx, job.ID)
		if err == nil {
			k.ledger.acknowledged(job.ID, "dropped")
		}
	} else {
		err = k.c.StopJob(ctx, job.ID)
	}
	if status := client.StatusOf(err); status != http.StatusNotFound && status != http.StatusConflict { // it has ended
		k.failed(err, "stop or remove a job")
	}
}

// refuse sends requests that must be refused and change nothing.
func (k *clients) refuse(ctx context.Context, stranger *client.Client) {
	n := rand.Int64()
	marked := event.Event{Type: "Made", Key: event.Key{Path: fmt.Sprint("/refused/", n)}}
	builtIn := marked
	builtIn.Type = "OrderAdded"
	key := fmt.Sprint("refused-", n)
	other := event.Event{Type: "Made0", Key: event.Key{Path: "/soak/refuse"}, Fields: fmt.Appendf(nil, `"n":%d`, n)}
	_, byStranger := stranger.Emit(ctx, []event.Event{marked})
	_, partly := k.c.Emit(ctx, []event.Event{marked, builtIn})
	_, _, illegal := k.c.AddJob(ctx, client.NewJob{Topic: "refused//topic"})
	_, _, unknown := k.c.EnqueueSync(ctx, "refused", "c0", 0)
	_, foreign := k.c.AppendToStream(ctx, uuidText(9, 9), streamNames[0], key, fact("refused", 0))
	refused := map[int]error{401: byStranger, 422: partly, 400: illegal, 404: unknown}
	if !k.failed(k.emitOnce(ctx, key, []event.Event{other}), "emit") {
		_, _, again := k.c.EmitOnce(ctx, key, []event.Event{marked})
		partly = errors.Join(partly, again)
		refused[422] = again
	}
	for status, err := range refused {
		if client.StatusOf(err) != status && (err == nil || !client.Temporary(err)) {
			k.ledger.wrong("a request that must be refused with %d was answered %v", status, err)
		}
	}
	if client.StatusOf(partly) != 422 && (partly == nil || !client.Temporary(partly)) {
		k.ledger.wrong("an append with a built-in type was answered %v", partly)
	}
	if status := client.StatusOf(foreign); status != http.StatusLocked && (foreign == nil || !client.Temporary(foreign)) {
		k.ledger.wrong("another producer's append was answered %v, want 423", foreign)
	}
}
