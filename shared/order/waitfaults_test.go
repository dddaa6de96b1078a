package order_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
)

// Three processes look for orders that wait over a bad network; each order's event is emitted as soon as somebody has seen on the
// journal that the order waits, which may be before the one that added it knows. None is missed.
func TestWaitsOverABadNetwork(t *testing.T) { overABadNetwork(t, time.Second, waitsOverABadNetwork) }

func waitsOverABadNetwork(t *testing.T, n network) {
	const orders = 20
	set := waiting(definition.Wait{Event: "Paid", Where: map[string]any{"order": "${id}"}})
	set.JobChains[0].Nodes[0].Next = "good"
	processes := n.processes(t, set)
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
	group.Go(func() { payAsTheyCome(ctx, processes[1].journal) })
	processes[0].insist(t, "x") // for which nobody pays: so the journal is followed all the time
	adding.Wait()
	b := open(t, n.base, set)
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
