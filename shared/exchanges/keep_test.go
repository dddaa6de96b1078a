package exchanges_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/exchanges"
)

// An exchange keeps up all that its instance holds, also what that has claimed by a request of its own.
func TestAnExchangeKeepsWhatWasClaimedOtherwise(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"by many": 0, "by one that waits": 6 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := openWith(t, shared(t), &definition.Set{Lease: 2 * time.Second})
				id := p.register(t, 5)
				p.must(t, id, exchanges.Request{Seq: 1})
				over := make(chan struct{})
				go func() {
					defer close(over)
					for seq := int64(2); seq < 12; seq++ {
						r := exchanges.Request{Seq: seq, Wait: wait}
						if p.must(t, id, r); wait > 0 {
							return
						}
						time.Sleep(600 * time.Millisecond)
					}
				}()
				synctest.Wait()
				ids := p.add(t, 1)
				i, err := p.members.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				leases, err := p.queue.Claim(t.Context(), i.Claims(), 1)
				if err != nil || len(leases) != 1 {
					t.Fatalf("%d leases, %v", len(leases), err)
				}
				<-over
				if _, err := p.queue.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				p.must(t, id, exchanges.Request{Seq: 20, Results: ok(tokensOf(leases)...)})
				finished(t, p, ids)
			})
		})
	}
}
