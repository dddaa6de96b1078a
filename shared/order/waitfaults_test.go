package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// Three processes look for orders that wait over a bad network; each order's event is emitted as soon as somebody has seen on the
// journal that the order waits, which may be before the one that added it knows. None is missed.
func TestWaitsOverABadNetwork(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { waitsOverABadNetwork(t, seed) })
		})
	}
}

func waitsOverABadNetwork(t *testing.T, seed uint64) {
	const orders = 20
	base := shared{memory.New(memory.Options{})}
	service := faulty.NewService(base, faulty.Faults{
		Seed: seed, InTurn: true, There: faulty.Spread{Min: time.Millisecond, Max: 20 * time.Millisecond}, Back: faulty.Spread{Max: 20 * time.Millisecond},
		Timeout: time.Second, LoseRequest: 0.01, LoseAnswer: 0.01, Busy: 0.03, Twice: 0.05, Untold: true, Apart: time.Second,
	}, nil)
	set := waiting(definition.Wait{Event: "Paid", Where: map[string]any{"order": "${id}"}})
	set.JobChains[0].Nodes[0].Next = "good"
	processes, journals := make([]rival, 3), make([]*journal.Journal, 3)
	for i := range processes {
		s := service.Process(fmt.Sprint("p", i))
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		e := order.Open(order.Options{Store: s, Journal: j, Definitions: &declared{set}, Now: time.Now})
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: &declared{set}, Now: time.Now, Steps: e})
		e.Use(q)
		processes[i], journals[i] = rival{e, q}, j
		defer func() { _ = q.Close(); _ = j.Close() }()
	}
	ctx, end := context.WithCancel(t.Context())
	var group, adding sync.WaitGroup
	for _, p := range processes {
		group.Go(func() { p.Run(ctx) })
	}
	for i := range orders {
		adding.Go(func() {
			time.Sleep(time.Duration(i) * time.Second)
			processes[i%3].insist(t, fmt.Sprint(i))
		})
	}
	group.Go(func() { payAsTheyCome(ctx, journals[1]) })
	processes[0].insist(t, "x") // for which nobody pays: so the journal is followed all the time
	adding.Wait()
	b := open(t, base, set)
	for range 100 {
		time.Sleep(time.Second)
		if left(b, orders) == 0 {
			break
		}
	}
	end()
	group.Wait()
	if n := left(b, orders); n > 0 {
		t.Errorf("%d of %d orders wait for events that have happened", n, orders)
	}
	b.agree()
}

// payAsTheyCome emits the event of each order that comes to wait.
func payAsTheyCome(ctx context.Context, j *journal.Journal) {
	for after := event.ID(0); ctx.Err() == nil; {
		read, err := j.ReadAfter(ctx, journal.Request{After: after, Limit: 1, Timeout: time.Minute, Match: isA(event.OrderWaiting)})
		if err != nil || len(read.Events) == 0 {
			continue
		}
		_, id := order.Split(read.Events[0].Key.Path)
		if after = read.Events[0].ID; id == "x" {
			continue
		}
		for ctx.Err() == nil {
			if _, err := j.Emit(ctx, []event.Event{{Type: "Paid", Fields: fmt.Appendf(nil, `"order":"%s"`, id)}}, nil); err == nil {
				break
			}
		}
	}
}

// left counts the orders that are there.
func left(b *bench, orders int) (n int) {
	for i := range orders {
		if _, err := b.Get(context.Background(), "/c", fmt.Sprint(i)); !errors.Is(err, order.ErrNoOrder) {
			n++
		}
	}
	return n
}
