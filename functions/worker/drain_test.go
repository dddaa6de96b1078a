package main

import (
	"context"
	"fmt"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier/faulty"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// TestABacklogWithoutNoticesDrainsAtTheWorkersPace: one sweep is enough, however long the queue is, and each task costs what it
// costs with a short one, but for what the first workers spend while they become more.
func TestABacklogWithoutNoticesDrainsAtTheWorkersPace(t *testing.T) {
	for _, n := range []int{1_000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			synctest.Test(t, func(t *testing.T) {
				d := deploy(t, time.Second, faulty.Faults{})
				d.wait(n)
				took := d.drain(n, false)
				u, notices := d.store.Usage(), d.notices.Load()
				calls, wcu := float64(u.Total().Calls)/float64(n), float64(u.Total().WCU)/float64(n)
				t.Logf("%d tasks of a second took %v with %d invocations for %d notices; each cost %.2f calls, %.2f WCU",
					n, took, d.invoked.Load(), notices, calls, wcu)
				if pace := time.Duration(n) * time.Second / (concurrency * batchSize); took > pace+10*time.Second {
					t.Errorf("it took %v, want %v and the time in which workers become more", took, pace)
				}
				most := 8.1 + 600/float64(n)
				if calls > 8 || wcu > most || notices > 40 {
					t.Errorf("each task cost %.2f calls and %.2f WCU, and all together %d notices, want 8, %.2f and 40 at most",
						calls, wcu, notices, most)
				}
			})
		})
	}
}

// TestABacklogOutlastsInvocations: workers whose time ends send a notification for another in their place.
func TestABacklogOutlastsInvocations(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	synctest.Test(t, func(t *testing.T) {
		const n = 3_000
		d := deploy(t, 100*time.Second, faulty.Faults{})
		d.wait(n)
		took, pace := d.drain(n, true), n*100*time.Second/(concurrency*batchSize)
		t.Logf("%d tasks of 100 s took %v with %d invocations for %d notices, where all workers at work take %v",
			n, took, d.invoked.Load(), d.notices.Load(), pace)
		if took > pace*3/2 {
			t.Errorf("it took %v, want little more than %v", took, pace)
		}
	})
}

// TestABacklogDrainsWithABadNotifier: where notifications are lost and doubled, each sweep brings some more workers.
func TestABacklogDrainsWithABadNotifier(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		d := deploy(t, time.Second, faulty.Faults{Lose: 0.7, Double: 0.2, Late: 0.3, Delay: time.Minute, Fail: 0.2})
		d.wait(n)
		took := d.drain(n, true)
		t.Logf("%d tasks of a second took %v with %d invocations for %d notices", n, took, d.invoked.Load(), d.notices.Load())
		if took > 5*time.Minute {
			t.Errorf("it took %v, want at most 5 minutes", took)
		}
	})
}

// TestWhatIsLetGoDrainsAtTheWorkersPace: all notifications came, in vain, while a queue was suspended or a job was paused.
func TestWhatIsLetGoDrainsAtTheWorkersPace(t *testing.T) {
	t.Parallel()
	const n = 1_000
	for name, hold := range map[string]func(ctx context.Context, q *queue.Queue, on bool) error{
		"a queue that is resumed": func(ctx context.Context, q *queue.Queue, on bool) error {
			return q.Suspend(ctx, definition.MainQueue, on)
		},
		"a pause that is lifted": func(ctx context.Context, q *queue.Queue, on bool) error {
			return q.SetRule(ctx, "/work", rule.Pause, on)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy(t, time.Second, faulty.Faults{})
			s := d.over(d.store)
			defer func() { _ = s.Close() }()
			if err := hold(t.Context(), s.Queue, true); err != nil {
				t.Fatal(err)
			}
			stop := d.start()
			defer stop()
			d.enqueue(s.Queue, n)
			time.Sleep(time.Minute)
			if got := d.count.Load(); got != 0 {
				t.Errorf("%s: %d tasks ran before", name, got)
			}
			if err := hold(t.Context(), s.Queue, false); err != nil {
				t.Fatal(err)
			}
			took := d.await(n, func(time.Duration) {})
			if pace := n * time.Second / (concurrency * batchSize); took > pace+10*time.Second {
				t.Errorf("%s: %d tasks took %v, want %v and the time in which workers become more", name, n, took, pace)
			}
		})
	}
}

// TestATaskByItselfCostsOneLookForAnother: each notification finds its task, and the worker looks once for another.
func TestATaskByItselfCostsOneLookForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		d := deploy(t, time.Second, faulty.Faults{})
		s := d.over(d.store)
		defer func() { _ = s.Close() }()
		stop := d.start()
		defer stop()
		for i := range n + 1 {
			if _, err := s.Queue.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/work", Payload: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if i == 0 { // the work that a process does only once is done
				d.store.Reset()
			}
		}
		usage := d.store.Usage()
		usage.Date = meter.Cost{} // each process compares its clock once a minute, however many tasks there are
		u := usage.Total()
		calls, wcu, rcu := float64(u.Calls)/n, float64(u.WCU)/n, u.RCU/n
		t.Logf("each task cost %.2f calls, %.2f WCU and %.2f RCU, and %d notices", calls, wcu, rcu, d.notices.Load())
		if calls > 20.5 || wcu > 18 || rcu > 13.5 || d.notices.Load() != n+1 {
			t.Errorf("each task cost %.2f calls, %.2f WCU and %.2f RCU, want 20.5, 18 and 13.5 at most; %d notices, want %d",
				calls, wcu, rcu, d.notices.Load(), n+1)
		}
	})
}
