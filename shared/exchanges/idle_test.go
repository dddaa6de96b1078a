package exchanges_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/tally"
)

// sharing is a store that other processes use too.
type sharing struct{ store.Store }

func (sharing) Exclusive() bool { return false }

// An exchange that waits in vain, as a worker makes one each third of its lease, takes ten calls of a store that processes share: the
// instance, its lease and the leader, the record twice, and a claim once. What waits in between takes some calls a second, whatever their
// number.
func TestAnExchangeInVainTakesTenCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const instances, each, seconds = 100, membership.DefaultLease / 3, 60
		s := tally.New(sharing{memory.New(memory.Options{})})
		p := open(t, s)
		defer p.queue.Close()
		p.add(t, 1) // of which one instance is told, so that there is a line to claim from
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for i := range instances {
			id := p.register(t, 1)
			group.Go(func() {
				time.Sleep(each * time.Duration(i) / instances)
				for seq := int64(1); ctx.Err() == nil; seq++ {
					known, err := p.members.Get(ctx, id) // as the handler of the request does
					if err == nil {
						_, err = p.Exchange(ctx, id, exchanges.Request{Seq: seq, Max: 1, Wait: each, Instance: &known})
					}
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(3 * time.Minute) // the lease of the one that was started has ended
		before := s.Calls()
		time.Sleep(seconds * time.Second)
		calls := int64(0)
		for method, n := range s.Calls() {
			calls += n - before[method]
		}
		cancel()
		group.Wait()
		const made, looks = instances * seconds / int64(each/time.Second), 4
		if least, most := 10*made, 10*made+looks*seconds; calls < least || calls > most {
			t.Errorf("%d exchanges in vain within %d s took %d calls of the store, want %d to %d", made, seconds, calls, least, most)
		}
	})
}
