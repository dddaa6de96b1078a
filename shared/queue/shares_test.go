package queue_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// sharing returns an engine of another process, which shares lines out with others as soon as one does.
func (b *bench) sharing(s store.Store, lasting bool) *bench {
	b.t.Helper()
	o := &bench{t: b.t, store: s, clock: b.clock}
	o.journal = journal.Open(s, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	o.Queue = queue.Open(queue.Options{
		Store: s, Journal: o.journal, Definitions: fixed{ways()}, Now: b.clock.now, SharedAt: 1, Lasting: lasting,
	})
	b.t.Cleanup(func() {
		o.Drain()
		_ = o.journal.Close()
	})
	return o
}

// shareOut says in the signpost of the main line that a process takes part, which does not exist.
func (b *bench) shareOut() {
	b.t.Helper()
	post, version, err := layout.LoadSignpost(b.t.Context(), b.store, mainLine)
	if err != nil || version == 0 {
		b.t.Fatal("the line lies in one part", err)
	}
	value := layout.Encode(post.With("zzz", b.clock.now().UnixMicro()))
	item := store.Item{Key: layout.SignpostKey(mainLine), Version: version + 1, Value: value}
	put := store.Write{Token: "share out", Ops: []store.Op{store.Put(item, store.VersionIs(version))}}
	if err := b.store.Write(b.t.Context(), put); err != nil {
		b.t.Fatal(err)
	}
}

// places returns in which part of the main line each task waits.
func (b *bench) places() map[string]string {
	b.t.Helper()
	at := map[string]string{}
	for _, part := range layout.ReadyParts(mainLine, layout.MostParts) {
		for p, err := range layout.Entries(b.t.Context(), b.store, store.Range{Table: store.Work, Partition: part}) {
			if err != nil {
				b.t.Fatal(err)
			}
			at[p.UUID] = part
		}
	}
	return at
}

// Processes that share a line out claim different parts, and mark nothing while much waits there. Each task is started once.
func TestProcessesShareALineOut(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 200)
	for len(b.claim(15)) > 0 { // what has come before the line grew
	}
	for range 600 {
		b.one(queue.New{Job: "/plain"})
		b.clock.advance(10 * time.Millisecond)
	}
	at := b.places()
	b.shareOut()
	counted := &writes{Store: shared{b.store}}
	one, two := b.sharing(counted, false), b.sharing(shared{b.store}, false)
	for range 2 { // they see the signpost, and take part
		one.claim(1)
		two.claim(1)
	}
	for range 3 { // they renew their places, and the process that does not exist does not
		b.clock.advance(time.Second)
		one.claim(1)
		two.claim(1)
	}
	from := map[*bench]map[string]int{one: {}, two: {}}
	before := counted.calls.Load()
	for range 6 {
		for p, parts := range from {
			for _, l := range p.demandClaim(5, 5, "600 tasks wait") {
				parts[at[l.Task.ID.UUID()]]++
			}
		}
	}
	if n := counted.calls.Load() - before; n > 8 {
		t.Errorf("six claims from a share made %d writes, want one each, but for a few marks in parts of the other", n)
	}
	both := 0
	for part, n := range from[one] {
		both += min(n, from[two][part])
	}
	if both > 6 {
		t.Errorf("of 30 tasks of each process, %d lie in parts from which the other claims as many", both)
	}
	started := 10 + 60
	for started < len(at) {
		n := len(one.claim(15)) + len(two.claim(15))
		if started += n; n == 0 {
			t.Fatalf("claims find nothing after %d of %d tasks", started, len(at))
		}
	}
	if started > len(at) {
		t.Errorf("%d tasks are started %d times", len(at), started)
	}
}

// A process leaves the first 15 tasks of each part to a process that takes part and claims nothing. What comes first behind them does not
// wait for long. In the end it has all tasks.
func TestWhatLiesInTheShareOfOthersIsNotPassedOverForLong(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	all, at := b.flood("/plain", 600), b.places()
	slices.SortStableFunc(all, func(x, y task.Task) int { return cmp.Compare(y.Priority, x.Priority) })
	rank := map[task.ID]int{}
	for i := range all {
		rank[all[i].ID] = i
	}
	p := b.sharing(shared{b.store}, false)
	waiting := map[task.ID]bool{}
	for _, t := range all {
		waiting[t.ID] = true
	}
	for since := 0; len(waiting) > 0; {
		b.shareOut()
		leases := p.claim(5)
		if len(leases) == 0 {
			t.Fatalf("a claim finds nothing of %d tasks", len(waiting))
		}
		last := 0
		for _, l := range leases {
			delete(waiting, l.Task.ID)
			last = max(last, rank[l.Task.ID])
		}
		passed := map[string]int{}
		for id := range waiting {
			if rank[id] < last {
				passed[at[id.UUID()]]++
			}
		}
		since += len(leases)
		if most := slices.Max(append(slices.Collect(maps.Values(passed)), 0)); most <= 15 {
			since = 0
		} else if since > 60 {
			t.Fatalf("with %d tasks left, %d tasks wait in a part since %d were started that come later", len(waiting), most, since)
		}
		b.clock.advance(50 * time.Millisecond)
	}
}

// What a claim has picked from its share and not started, the next claim picks.
func TestAClaimThatFailsLeavesItsShare(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 600)
	b.shareOut()
	f := &failing{shared: shared{b.store}}
	f.left.Store(1000)
	p := b.sharing(f, false)
	p.claim(1) // it sees the signpost
	p.claim(1)
	f.left.Store(0)
	if leases, err := p.Claim(t.Context(), queue.Claimer{Instance: "i"}, 5); err == nil {
		t.Fatalf("a claim starts %d tasks on a store that takes no writes", len(leases))
	}
	f.left.Store(1000)
	first := p.demandClaim(5, 5, "600 tasks wait")
	for _, l := range p.demandClaim(15, 15, "600 tasks wait") {
		if l.Task.Priority > first[4].Task.Priority {
			t.Errorf("%s is claimed after %s, which has a lower priority", l.Task.ID, first[4].Task.ID)
		}
	}
}

// Processes that read ahead start each task once, however many claims they make at once.
func TestWhatIsReadAheadIsStartedOnce(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	all := b.flood("/plain", 600)
	b.shareOut()
	var mu sync.Mutex
	starts := map[task.ID]int{}
	var group sync.WaitGroup
	for range 3 {
		p := b.sharing(shared{b.store}, true)
		for range 4 {
			group.Go(func() {
				for misses := 0; misses < 3; {
					leases, err := p.Claim(t.Context(), queue.Claimer{Instance: "i"}, 3)
					if err != nil {
						t.Error(err)
						return
					}
					if len(leases) == 0 {
						misses++
						b.clock.advance(time.Second) // what others have marked or read ahead
					}
					mu.Lock()
					for i := range leases {
						starts[leases[i].Task.ID]++
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	for _, t2 := range all {
		if n := starts[t2.ID]; n != 1 {
			t.Fatalf("task %s was started %d times; of %d tasks %d were", t2.ID, n, len(all), len(starts))
		}
	}
}

// No claim that begins after a rule was set, in whatever process, starts a task that it holds, though processes that share a line out go by
// rules that they have read before.
func TestARuleHoldsWhatWasReadAhead(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 600)
	b.shareOut()
	p := b.sharing(shared{b.store}, true)
	for range 3 {
		p.demandClaim(1, 1, "600 tasks wait") // it sees the signpost, perhaps
		p.demandClaim(1, 1, "600 tasks wait")
		b.rule("/plain", rule.Pause)
		p.demandClaim(15, 0, "the job is paused")
		if err := b.SetRule(t.Context(), "/plain", rule.Pause, false); err != nil {
			t.Fatal(err)
		}
		b.shareOut()
	}
}

// Claims that are made as one find as many tasks as there are, though less was read ahead.
func TestClaimsFindWhatWaitsBehindWhatIsReadAhead(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 1000)
	b.shareOut()
	p := b.sharing(shared{b.store}, true)
	for len(b.signpost(mainLine).Sharers) < 2 { // until it takes part
		p.claim(1)
	}
	p.claim(1)
	for range 30 {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				leases, err := p.Claim(t.Context(), queue.Claimer{Instance: "i"}, 1)
				if err != nil || len(leases) != 1 {
					t.Errorf("a claim starts %d tasks, %v, want one of those that wait", len(leases), err)
				}
			})
		}
		group.Wait()
		b.clock.advance(20 * time.Millisecond)
	}
}

// A claim from a line that is shared out reads past tasks of a paused job, as another does, instead of moving each.
func TestAClaimFromAShareReadsPastWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 2000)
	b.one(queue.New{Job: "/fair/a", Queue: "main", Priority: -1})
	b.shareOut()
	b.rule("/plain", rule.Pause)
	counted := &writes{Store: shared{b.store}}
	p := b.sharing(counted, false)
	p.demandClaim(1, 1, "one task may start")
	b.one(queue.New{Job: "/fair/a", Queue: "main", Priority: -1})
	before := counted.calls.Load()
	p.demandClaim(1, 1, "one more task may start")
	if n := counted.calls.Load() - before; n > 30 {
		t.Errorf("a claim made %d writes to find a task behind 2000 that are held, want some for tidying", n)
	}
}

// troubled is a store of which one read of tasks fails, or one read of a part or of tasks hangs.
type troubled struct {
	shared
	fails     atomic.Bool
	hangs     atomic.Pointer[chan struct{}] // a read of a part, until when
	tasksHang atomic.Pointer[chan struct{}] // a read of tasks
	hanging   chan struct{}                 // closed when a read hangs
}

// hang lets a read wait if it is the one that shall.
func (s *troubled) hang(which *atomic.Pointer[chan struct{}]) {
	if until := which.Swap(nil); until != nil {
		close(s.hanging)
		<-*until
	}
}

var errLate = errors.New("too late")

func (s *troubled) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if strings.HasPrefix(keys[0].Partition, "task/") {
		if s.fails.CompareAndSwap(true, false) {
			return nil, errLate
		}
		s.hang(&s.tasksHang)
	}
	return s.shared.Get(ctx, keys...)
}

func (s *troubled) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if strings.HasPrefix(r.Partition, "ready.") {
		s.hang(&s.hangs)
	}
	return s.shared.Query(ctx, r)
}

// joined makes a process take part in sharing the main line out.
func (b *bench) joined(p *bench) *bench {
	b.t.Helper()
	b.shareOut()
	for len(b.signpost(mainLine).Sharers) < 2 {
		p.claim(1)
	}
	p.claim(1)
	return p
}

// What a claim has marked when its read fails, the next claim finds.
func TestAReadThatFailsHidesNothing(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 400)
	s := &troubled{shared: shared{b.store}}
	p := b.joined(b.sharing(s, false))
	for len(p.claim(15)) > 0 {
	}
	for range 9 {
		b.one(queue.New{Job: "/plain"})
	}
	s.fails.Store(true)
	if leases, err := p.Claim(t.Context(), queue.Claimer{Instance: "i"}, 15); err == nil {
		t.Fatalf("a claim starts %d tasks that it cannot read", len(leases))
	}
	found := 0
	for range 9 {
		found += len(p.claim(9))
	}
	if found != 9 {
		t.Errorf("claims find %d tasks after a read that has failed, want 9", found)
	}
}

// A claim whose read hangs keeps no other claim waiting.
func TestAReadThatHangsKeepsNoOtherClaim(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 800)
	s := &troubled{shared: shared{b.store}, hanging: make(chan struct{})}
	p := b.joined(b.sharing(s, false))
	until := make(chan struct{})
	s.hangs.Store(&until)
	var group sync.WaitGroup
	group.Go(func() { p.demandClaim(1, 1, "its read goes on in the end") })
	<-s.hanging
	p.demandClaim(1, 1, "800 tasks wait")
	close(until)
	group.Wait()
}

// What one claim has chosen from the share and has not started yet hides nothing behind it from another that cannot wait for it.
func TestWhatAnotherClaimHasChosenHidesNothing(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	flood := b.flood("/plain", 800)
	s := &troubled{shared: shared{b.store}, hanging: make(chan struct{})}
	p := b.joined(b.sharing(s, false))
	post, at := b.signpost(mainLine), b.places()
	parts := layout.ReadyParts(mainLine, post.Read)
	var theirs []task.ID
	for _, each := range flood {
		if n := slices.Index(parts, at[each.ID.UUID()]); n >= 0 && post.Sharers[n%len(post.Sharers)].ID == "zzz" {
			theirs = append(theirs, each.ID)
		}
	}
	if _, err := b.Withdraw(t.Context(), 0, theirs...); err != nil {
		t.Fatal(err)
	}
	until := make(chan struct{})
	s.tasksHang.Store(&until)
	var group sync.WaitGroup
	group.Go(func() { p.demandClaim(15, 15, "its read goes on in the end") })
	<-s.hanging
	p.demandClaim(1, 1, "hundreds of tasks wait")
	close(until)
	group.Wait()
}

// Tasks that are held at the head of a share hide nothing behind them while others may start.
func TestWhatIsHeldInAShareHidesNothing(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	b.flood("/plain", 300)
	for len(b.claim(15)) > 0 {
	}
	add := func(job string, priority int64, n int) {
		for range n {
			b.one(queue.New{Job: job, Queue: "main", Priority: priority})
		}
	}
	add("/fair/a", -1, 1000)
	p := b.joined(b.sharing(shared{b.store}, false))
	add("/plain", 3, 240) // some 60 in each of four parts
	b.rule("/plain", rule.Pause)
	for range 100 {
		b.shareOut()
		add("/fair/a", -1, len(p.claim(5)))
		b.clock.advance(10 * time.Millisecond)
	}
	if n := b.items(layout.HeldPartition("rule//plain")); n < 120 {
		t.Errorf("%d tasks of a paused job have left the line, want most of 240", n)
	}
}
