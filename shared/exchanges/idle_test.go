package exchanges_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/tally"
)

// sharing is a store that other processes use too.
type sharing struct{ store.Store }

func (sharing) Exclusive() bool { return false }

// Workers that wait in vain, with an exchange each third of a lease, take a call each two exchanges, by which their leases are looked
// for, and some calls a second for all of them together: what they write, who leads, and a look for what others have made ready. It
// would be ten calls for each exchange. Where a store has a price for each item, it is two writes and a look at who leads.
func TestWaitingInVainIsOneWriteASecond(t *testing.T) {
	t.Parallel()
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		waitInVain(t, func(made, seconds int64) (most int64) { return made/2 + 8*seconds })
	})
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		waitInVain(t, func(made, seconds int64) (most int64) { return made*7/2 + 4*seconds }, apart)
	})
}

// apart has exchanges write items by themselves.
func apart(o *exchanges.Options) { o.Apart = true }

func waitInVain(t *testing.T, bound func(made, seconds int64) (most int64), with ...func(*exchanges.Options)) {
	synctest.Test(t, func(t *testing.T) {
		const instances, each, seconds = 100, membership.DefaultLease / 3, 60
		s := tally.New(sharing{memory.New(memory.Options{})})
		p := open(t, s, with...)
		defer p.queue.Close()
		p.add(t, 1) // of which one instance is told, so that there is a line to claim from
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for i := range instances {
			id := p.register(t, 1)
			group.Go(func() {
				time.Sleep(each * time.Duration(i) / instances)
				var results []queue.Completion
				for seq := int64(1); ctx.Err() == nil; seq++ {
					got, err := p.handle(ctx, id, exchanges.Request{Seq: seq, Results: results, Max: 1, Wait: each})
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
					results = nil
					for _, c := range got.Claims {
						results = append(results, queue.Completion{Token: c.Token, Result: queue.Result{Outcome: queue.OK}})
					}
				}
			})
		}
		// By the clock of the bubble the task has ended long since, and no exchange is at the edge of what is counted.
		time.Sleep(3*time.Minute + each/(2*instances))
		before := s.Calls()
		time.Sleep(seconds * time.Second)
		calls := int64(0)
		for method, n := range s.Calls() {
			calls += n - before[method]
		}
		cancel()
		group.Wait()
		const made = instances * seconds / int64(each/time.Second)
		if most := bound(made, seconds); calls > most {
			t.Errorf("%d exchanges in vain within %d s took %d calls of the store, want at most %d", made, seconds, calls, most)
		}
	})
}

// handle makes an exchange as the handler of a request does.
func (p *process) handle(ctx context.Context, id string, r exchanges.Request) (exchanges.Response, error) {
	look, err := p.Look(ctx, id, &r)
	defer look.End()
	if err != nil {
		return exchanges.Response{}, err
	}
	r.Look = &look
	return p.Exchange(ctx, id, r)
}
