package exchanges_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// counted counts the writes of a store that change tasks or records of exchanges.
type counted struct {
	store.Store
	writes atomic.Int32
}

func (c *counted) Write(ctx context.Context, w store.Write) error {
	if slices.ContainsFunc(w.Ops, changes) {
		c.writes.Add(1)
	}
	return c.Store.Write(ctx, w)
}

func changes(op store.Op) bool {
	return strings.HasPrefix(op.Item.Key.Partition, "exchange/") || strings.HasPrefix(op.Item.Key.Partition, "task/")
}

// writesOf returns how many writes something makes.
func (c *counted) writesOf(do func()) int {
	before := c.writes.Load()
	do()
	return int(c.writes.Load() - before)
}

// An instance of one slot that tells the end of a task gets the next in the same write, whether another instance waits or not.
func TestAnEndAndTheNextStartAreOneWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, inner store.Store) { theNextStartIsInTheWrite(t, &counted{Store: inner}) })
}

func theNextStartIsInTheWrite(t *testing.T, s *counted) {
	t.Helper()
	p := open(t, s)
	id := p.register(t, 1)
	ids := p.add(t, 4)
	next := p.must(t, id, exchanges.Request{Seq: 1, Max: 1}).Claims
	for seq := int64(2); len(next) > 0; seq++ {
		var got exchanges.Response
		writes := s.writesOf(func() { got = p.must(t, id, exchanges.Request{Seq: seq, Max: 1, Results: ok(tokensOf(next)...)}) })
		if writes != 1 || len(got.Results) != 1 || got.Results[0].State != "SUCCEEDED" {
			t.Errorf("exchange %d: %d writes, results %+v, want one write", seq, writes, got.Results)
		}
		again := p.must(t, id, exchanges.Request{Seq: seq, Max: 1, Results: ok(tokensOf(next)...)})
		compare(t, &got, &again)
		next = got.Claims
	}
	finished(t, p, ids)
}

// What an end makes ready is started before what was ready behind it: then the end is written first.
func TestAnEndThatMakesATaskReadyIsWrittenBeforeTheNextStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		p := open(t, s)
		id := p.register(t, 2)
		for range 2 {
			n := queue.New{Job: "/topics/a", Attempts: 1, Priority: 9, Concurrency: &task.Concurrency{Key: "k", Limit: 1}}
			if _, err := p.queue.Enqueue(t.Context(), nil, n); err != nil {
				t.Fatal(err)
			}
		}
		first := p.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims
		p.add(t, 1)
		got := p.must(t, id, exchanges.Request{Seq: 2, Max: 1, Results: ok(tokensOf(first)...)})
		if len(got.Claims) != 1 || got.Claims[0].Task.Priority != 9 {
			t.Errorf("claims = %+v, want the one that waited for the key", got.Claims)
		}
	})
}

// A worker that tells the ends of all that it runs gets nearly as many in the same write, the next ones in order, and needs no second write
// for the few that are left, which its next exchange gets.
func TestAFullExchangeIsOneWrite(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, inner store.Store) { theExchangeIsOneWrite(t, &counted{Store: inner}) })
}

func theExchangeIsOneWrite(t *testing.T, s *counted) {
	t.Helper()
	p := open(t, s)
	id := p.register(t, 16)
	ids := p.add(t, 60)
	running := p.must(t, id, exchanges.Request{Seq: 1, Max: 16}).Claims
	started := len(running)
	for seq := int64(2); len(running) > 0; seq++ {
		var got exchanges.Response
		writes := s.writesOf(func() { got = p.must(t, id, exchanges.Request{Seq: seq, Max: 16, Results: ok(tokensOf(running)...)}) })
		if left := len(ids) - started; writes != 1 || len(got.Claims) < min(13, left) {
			t.Errorf("exchange %d: %d writes and %d claims of %d, want one write and at least 13", seq, writes, len(got.Claims), left)
		}
		for i := range got.Claims {
			if got.Claims[i].Task.ID != ids[started+i] {
				t.Errorf("exchange %d: claim %d is not the next task", seq, i)
			}
		}
		running, started = got.Claims, started+len(got.Claims)
	}
	finished(t, p, ids)
}

// Where a write holds more than in any store, a worker gets as many tasks as it tells the ends of in the same write.
func TestALargeExchangeIsOneWrite(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]memory.Options{"alone": {MaxOps: 600}, "shared": {MaxOps: 600, Shared: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &counted{Store: memory.New(o)}
			p := open(t, s)
			id := p.register(t, 90)
			ids := p.add(t, 180)
			var running []queue.Lease
			for seq := range int64(3) {
				var got exchanges.Response
				writes := s.writesOf(func() {
					got = p.must(t, id, exchanges.Request{Seq: seq + 1, Max: 90, Results: ok(tokensOf(running)...)})
				})
				if want := min(90, len(ids)); writes != 1 || len(got.Claims) != want {
					t.Fatalf("exchange %d: %d writes and %d claims, want one write and %d", seq+1, writes, len(got.Claims), want)
				}
				for i := range got.Claims {
					if got.Claims[i].Task.ID != ids[i] {
						t.Errorf("exchange %d: claim %d is not the next task", seq+1, i)
					}
				}
				running, ids = got.Claims, ids[len(got.Claims):]
			}
		})
	}
}

// Whatever ends of an instance come with whatever starts, while its capacity changes: each exchange is made, and each task is started once.
func TestEndsAndStartsGoTogetherWhateverTheyAre(t *testing.T) {
	t.Parallel()
	bubble(t, goTogether)
}

func goTogether(t *testing.T, _ store.Store) {
	t.Helper()
	shared := strings.HasSuffix(t.Name(), "shared")
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		kept := definition.Queue{Name: "k", Topics: []string{"a"}, KeepJobs: true}
		set := &definition.Set{}
		if seed%2 == 0 {
			set.Queues = []definition.Queue{kept}
		}
		p := openWith(t, memory.New(memory.Options{Shared: shared}), set)
		id := p.register(t, 16)
		left := len(p.add(t, 100))
		starts := map[task.ID]int{}
		var running []queue.Lease
		for seq := int64(1); left > 0 || len(running) > 0; seq++ {
			most := 1 + random.IntN(40)
			if _, err := p.members.Heartbeat(t.Context(), id, membership.Change{Capacity: &most}); err != nil {
				t.Fatal(err)
			}
			random.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
			n := random.IntN(len(running) + 1)
			results := ok(tokensOf(running[:n])...)
			for i := range results {
				if random.IntN(4) == 0 {
					results[i].Result.Outcome = queue.Failed
				}
			}
			got := p.must(t, id, exchanges.Request{Seq: seq, Max: random.IntN(most + 1), Results: results})
			running = append(slices.Clone(running[n:]), got.Claims...)
			for i := range got.Claims {
				starts[got.Claims[i].Task.ID]++
			}
			for i, r := range got.Results {
				if r.Code != "" {
					t.Fatalf("seed %d, exchange %d: result %d: %s", seed, seq, i, r.Code)
				}
			}
			if left -= len(got.Claims); len(got.Claims) > 0 && len(running) > most {
				t.Fatalf("seed %d, exchange %d: it runs %d, its capacity is %d", seed, seq, len(running), most)
			}
		}
		for id, n := range starts {
			if n != 1 {
				t.Errorf("seed %d: %s was started %d times", seed, id, n)
			}
		}
	}
}

// rivalled is a store in which something happens before the first write that ends an attempt and begins another.
type rivalled struct {
	store.Store
	before func()
	once   sync.Once
}

func (r *rivalled) Write(ctx context.Context, w store.Write) error {
	tasks := 0
	for _, op := range w.Ops {
		if strings.HasPrefix(op.Item.Key.Partition, "task/") {
			tasks++
		}
	}
	if tasks > 1 {
		r.once.Do(r.before)
	}
	return r.Store.Write(ctx, w)
}

// Where another process starts the task that an end's write was to start, the end is written all the same, and the instance gets the task
// behind it.
func TestAnotherProcessIsQuickerThanTheNextStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared(t)
		other := open(t, s)
		theirs := other.register(t, 1)
		var taken []queue.Lease
		p := open(t, &rivalled{Store: s, before: func() { taken = other.must(t, theirs, exchanges.Request{Seq: 1, Max: 1}).Claims }})
		id := p.register(t, 1)
		ids := p.add(t, 3)
		running := p.must(t, id, exchanges.Request{Seq: 1, Max: 1}).Claims
		got := p.must(t, id, exchanges.Request{Seq: 2, Max: 1, Results: ok(tokensOf(running)...)})
		if len(taken) != 1 || taken[0].Task.ID != ids[1] {
			t.Fatalf("the other process has started %+v, want the second task", taken)
		}
		if len(got.Results) != 1 || got.Results[0].State != "SUCCEEDED" || len(got.Claims) != 1 || got.Claims[0].Task.ID != ids[2] {
			t.Errorf("results %+v and claims %+v, want that it ended, and the third task", got.Results, got.Claims)
		}
		p.must(t, id, exchanges.Request{Seq: 3, Results: ok(tokensOf(got.Claims)...)})
		other.must(t, theirs, exchanges.Request{Seq: 2, Results: ok(tokensOf(taken)...)})
		finished(t, p, ids)
	})
}

// Ends that the store does not take together with others are written one by one.
func TestEndsThatAreRefusedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{Store: shared(t)}
		p := open(t, s)
		id := p.register(t, 3)
		ids := p.add(t, 3)
		first := p.must(t, id, exchanges.Request{Seq: 1, Max: 3}).Claims
		ids = append(ids, p.add(t, 1)...)
		s.refuses.Store(true)
		got := p.must(t, id, exchanges.Request{Seq: 2, Max: 1, Results: ok(tokensOf(first)...)})
		if len(got.Results) != 3 || slices.ContainsFunc(got.Results, func(o exchanges.Outcome) bool { return o.State != "SUCCEEDED" }) {
			t.Errorf("results = %+v, want three that succeeded", got.Results)
		}
		p.must(t, id, exchanges.Request{Seq: 3, Results: ok(tokensOf(got.Claims)...)})
		finished(t, p, ids)
	})
}

// refusing is a store that, once it is told to, refuses each write that changes several tasks.
type refusing struct {
	store.Store
	refuses atomic.Bool
}

func (r *refusing) Write(ctx context.Context, w store.Write) error {
	tasks := 0
	for _, op := range w.Ops {
		if strings.HasPrefix(op.Item.Key.Partition, "task/") {
			tasks++
		}
	}
	if r.refuses.Load() && tasks > 1 {
		return store.ErrTooLarge
	}
	return r.Store.Write(ctx, w)
}
