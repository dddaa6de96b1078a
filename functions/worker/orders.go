package main

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/service"
)

// apart returns the notifications of tasks, and the times of those of orders.
func apart(notices []heard) (tasks []heard, orders []time.Time) {
	for _, n := range notices {
		if n.Orders {
			orders = append(orders, n.At)
		} else {
			tasks = append(tasks, n)
		}
	}
	return tasks, orders
}

// awake lets orders go on when the last of some times has come. What it does not come to, the sweep does within a minute.
func awake(ctx context.Context, s *service.Tasks, times []time.Time) {
	if deadline, limited := ctx.Deadline(); limited {
		within, cancel := context.WithDeadline(ctx, deadline.Add(-spare))
		defer cancel()
		ctx = within
	}
	if early := time.Until(slices.MaxFunc(times, time.Time.Compare)); early > 0 {
		select {
		case <-time.After(early):
		case <-ctx.Done():
			return
		}
	}
	if err := s.Orders.Awake(ctx); err != nil {
		s.Log.Warn("orders were not moved; the sweep does that", "error", err)
	}
}
