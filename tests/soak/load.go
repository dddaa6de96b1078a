package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/client"
)

// clients send requests, and note the results.
type clients struct {
	plan   *plan
	c      *client.Client
	ledger *ledger

	sent   atomic.Int64 // requests of any kind
	doubts atomic.Int64 // requests whose outcome is not known
}

// failed notes an error of a request, and reports whether there is one.
func (k *clients) failed(err error, what string) bool {
	k.sent.Add(1)
	switch {
	case err == nil:
		return false
	case client.Temporary(err):
		k.doubts.Add(1)
	default:
		k.ledger.wrong("%s: %v", what, err)
	}
	return true
}

// pace calls do with calls at that rate a second, from several goroutines, until ctx ends. What is under way then may end.
func pace(ctx, calls context.Context, goroutines int, rate float64, do func(context.Context)) {
	var group sync.WaitGroup
	defer group.Wait()
	for range goroutines {
		group.Go(func() {
			mean := float64(time.Second) * float64(goroutines) / rate
			for wait(ctx, time.Duration(mean*(0.5+rand.Float64()))) {
				do(calls)
			}
		})
	}
}

// wait reports whether ctx lasts so long.
func wait(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// chance reports true with that probability.
func chance(p float64) bool { return rand.Float64() < p }

// pick returns one of the values at random.
func pick[T any](all ...T) T { return all[rand.N(len(all))] }

// ask adds a task of one of the three kinds.
func (k *clients) ask(ctx context.Context) {
	switch {
	case chance(0.15):
		k.askSync(ctx)
	case chance(0.4):
		k.askHandler(ctx)
	default:
		k.askJob(ctx)
	}
}

func (k *clients) askSync(ctx context.Context) {
	source := pick("web", "hosts", "web", "hosts", "commands")
	id, _, err := k.c.EnqueueSync(ctx, source, fmt.Sprint("c", rand.N(collections)), pick[int64](100, 200, 300))
	if !k.failed(err, "enqueue a synchronization") {
		k.ledger.acknowledged(id, "")
	}
}

// wish returns what is to happen to a task of a pool, and the state in which it must end.
func wish(by pool) (payload []byte, want string) {
	w, want := work{Work: "ok", Took: rand.N(30)}, "succeeded"
	switch {
	case chance(0.6):
	case chance(0.1):
		w.Work, w.Took = "slow", 500+rand.N(1000)
	case chance(0.1):
		w.Work, want = "reject", "rejected"
	case by == byWorkers:
		w.Work = pick("fail", "panic")
	default:
		w.Work = pick("fail", "later", "again")
	}
	return fmt.Appendf(nil, `{"work":%q,"ms":%d}`, w.Work, w.Took), want
}

func (k *clients) askHandler(ctx context.Context) {
	name := pick("web", "hosts", "paused", "blocked", "web", "hosts", "paused", "blocked", "command")
	l := lines[lineOf("/canvases/c/S/"+name)]
	value, want := wish(l.pool)
	if name == "command" {
		want = "succeeded" // whatever it is given
	}
	e := client.NewEvent{Value: value}
	if chance(0.2) {
		e.DelayUntil = time.Now().Add(time.Duration(rand.N(int64(5 * time.Second))))
	}
	emitted, err := k.c.EmitTo(ctx, client.HandlerName{Canvas: "c", Space: "S", Name: name}, e)
	if !k.failed(err, "emit to "+name) {
		k.ledger.acknowledged(emitted.ID, want)
	}
}

func (k *clients) askJob(ctx context.Context) {
	topic := pick("web/plain", "hosts/plain", "row/one")
	if chance(0.8) { // a row is slow: one after the other, and each lease that is lost is waited for
		topic = pick("web/plain", "web/plain", "hosts/plain", "hosts/plain", "hosts/limited", "narrow/one", "fair/one", "held/one")
	}
	properties, want := wish(lines[lineOf("/topics/"+topic)].pool)
	n := client.NewJob{Topic: topic, Properties: properties, Priority: rand.N[int64](10)}
	switch topic {
	case "hosts/limited":
		n.Concurrency = &client.JobConcurrency{Key: "limited", Limit: 2}
	case "fair/one":
		n.FairnessKey = pick("a", "b", "c")
	}
	if chance(0.2) && topic != "row/one" { // what waits for its time holds up a row
		n.RunAt = time.Now().Add(time.Duration(rand.N(int64(6 * time.Second))))
	}
	if chance(0.1) {
		n.Unique, want = strconv.Itoa(rand.N(20)), "" // perhaps it is another one's task
	}
	job, _, err := k.c.AddJob(ctx, n)
	if !k.failed(err, "add a job to "+topic) {
		k.ledger.acknowledged(job.ID, want)
	}
}
