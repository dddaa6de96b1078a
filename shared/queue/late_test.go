package queue_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
)

// A tick whose attempt is given back, or has failed, begins again when its time comes, and holds its key meanwhile.
func TestATickBeginsAgain(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]queue.Result{
		"given back":      {Outcome: queue.Again, RetryDelay: time.Second},
		"given back soon": {Outcome: queue.Again, RetryDelay: time.Microsecond},
		"failed":          {Outcome: queue.Failed, RetryDelay: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, b *bench) {
				n := queue.SyncTask("S", "A", 200)
				n.NotBefore, n.Same, n.Schedule, n.Late, n.Attempts = b.clock.now().Add(time.Second), "schedule s", "s", true, 2
				id := b.enqueue(n)[0].Task.ID
				b.clock.advance(time.Second)
				b.complete(b.demandClaim(1, 1, "due")[0], r)
				if e := b.enqueue(queue.SyncTask("S", "A", 300))[0]; !e.Existing || e.Task.ID != id {
					t.Errorf("a request by hand = %+v, want the tick", e)
				}
				b.clock.advance(time.Minute)
				if again := b.demandClaim(1, 1, "again"); again[0].Task.ID != id {
					t.Errorf("%v is started, want the tick again", again[0].Task.ID)
				}
			})
		})
	}
}
