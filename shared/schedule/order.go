package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Orders starts the orders of schedules; an [order.Engine] is one.
type Orders interface {
	Start(ctx context.Context, once *queue.Once, chain, id string, at time.Time) (order.Started, error)
	Unstart(ctx context.Context, chain, id string, now time.Time) error
}

// errNoOrders is the error of a schedule of an order in a process that moves none.
var errNoOrders = errors.New("schedule: this process does not move orders")

// start plans starts of the schedule's order, and returns how many. Those that the order does not take are left out: it has them, is
// suspended, is under way, or is not a schedule's.
func (s *Scheduler) start(ctx context.Context, p *plan, times []time.Time) (made int, err error) {
	if s.o.Orders == nil {
		return 0, errNoOrders
	}
	for _, at := range times {
		_, err := s.o.Orders.Start(ctx, nil, p.Order.Chain, p.Order.ID, at)
		switch {
		case err == nil:
			made++
		case !errors.Is(err, order.ErrState):
			return made, err
		}
	}
	return made, nil
}

// triggerOrder starts the schedule's order now. The task is that of its first step; none if that waits for something. The error is
// [order.ErrState] if the order is suspended, or has not ended since its last start.
func (s *Scheduler) triggerOrder(ctx context.Context, once *queue.Once, p *plan) (queue.Enqueued, error) {
	if s.o.Orders == nil {
		return queue.Enqueued{}, errNoOrders
	}
	started, err := s.o.Orders.Start(ctx, once, p.Order.Chain, p.Order.ID, s.o.Now())
	return queue.Enqueued{Tasks: []queue.Added{{Task: task.Task{ID: started.Task}}}, Replayed: started.Replayed}, err
}

// withdraw takes back the ticks of a plan that are later than now: their tasks, or the starts of its order.
func (s *Scheduler) withdraw(ctx context.Context, p *plan, now time.Time, cause event.ID, ids []task.ID) error {
	if p.Order != nil && s.o.Orders != nil {
		return s.o.Orders.Unstart(ctx, p.Order.Chain, p.Order.ID, now)
	}
	_, err := s.o.Queue.Withdraw(ctx, cause, ids...)
	return err
}
