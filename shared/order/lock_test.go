package order_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// locking is the chain /c whose first step holds locks, and a lock db for 2 shared holders. Names are of locks; those with a + are
// shared. Further chains /c1, /c2 … have further lists of locks.
func locking(lists ...[]string) *definition.Set {
	set := chains()
	set.Locks = []definition.Lock{{Name: "db", MaxShared: 2}, {Name: "a"}, {Name: "b"}}
	for i, names := range lists {
		var locks []definition.NodeLock
		for _, name := range names {
			l := definition.NodeLock{Name: name}
			if name[0] == '+' {
				l = definition.NodeLock{Name: name[1:], Shared: true}
			}
			locks = append(locks, l)
		}
		path := "/c"
		if i > 0 {
			path = fmt.Sprint("/c", i)
		}
		set.JobChains = append(set.JobChains, definition.JobChain{Path: path, Nodes: []definition.Node{
			{ID: "A", Job: "/back", Locks: locks, OnError: definition.ErrorSetsBack, Next: "B"}, {ID: "B", Job: "/j"}, {ID: "end"},
		}})
	}
	return set
}

// on adds an order of a chain.
func (b *bench) on(chain, id string) {
	b.t.Helper()
	b.add(func(r *order.Request) { r.Chain, r.ID = chain, id })
}

// running starts all steps that can start, and returns their leases by the orders' paths.
func (b *bench) running() map[string]*queue.Lease {
	all := map[string]*queue.Lease{}
	for l := b.claim(); l != nil; l = b.claim() {
		all[l.Task.Order.Path()] = l
	}
	return all
}

// What gives back a lock brings about that those in line go on, and that brings about their steps.
func TestWhoGetsALockNamesWhoGaveItBack(t *testing.T) {
	onBoth(t, locking([]string{"db"}, []string{"+db"}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.on("/c1", "2")
		b.on("/c1", "3")
		b.events()
		from := b.seen
		b.step("A", ok)
		page, err := b.journal.ReadAfter(t.Context(), journal.Request{After: from, Limit: 100, Causes: true})
		if err != nil {
			t.Fatal(err)
		}
		place, got := map[event.ID]int{}, map[string]string{}
		for i := range page.Events {
			e := &page.Events[i]
			place[e.ID] = i
			if by, here := place[e.Cause.ID()]; here && (e.Type == event.OrderNodeChanged || e.Type == event.TaskAdded) {
				got[fmt.Sprint(i, " ", e.Type, " ", e.Key.Path)] = fmt.Sprint(by, " ", page.Events[by].Key.Path)
			}
		}
		want := map[string]string{
			"4 OrderNodeChanged /c,1": "3 /c,1", "5 OrderNodeChanged /c1,2": "4 /c,1", "6 OrderNodeChanged /c1,3": "4 /c,1",
			"9 TaskAdded /j": "4 /c,1", "10 TaskAdded /back": "5 /c1,2", "11 TaskAdded /back": "6 /c1,3",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what names what (-want +got):\n%s", diff)
		}
	})
}

func TestAnExclusiveLock(t *testing.T) {
	onBoth(t, locking([]string{"db"}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.on("/c", "2")
		b.want("OrderAdded:A TaskAdded OrderAdded:A OrderWaiting:A:lock")
		if r, err := b.Why(t.Context(), "/c", "2"); err != nil || r.Code != order.ReasonLock || fmt.Sprint(r.Details["holders"]) != "[/c,1]" || r.Details["lock"] != "db" {
			t.Errorf("Why = %+v, %v", r, err)
		}
		b.step("A", ok)
		b.want("TaskStarted OrderStarted OrderStepStarted:A OrderStepEnded:Success OrderNodeChanged:B OrderNodeChanged:A TaskEnded TaskClosed TaskAdded TaskAdded")
		b.is(projection.Due, "B")
		all := b.running()
		if len(all) != 2 {
			t.Errorf("%d steps run, want that of 2 at A and that of 1 at B", len(all))
		}
		b.complete(all["/c,2"], ok)
		b.on("/c", "3")
		b.want("TaskStarted OrderStarted OrderStepStarted:A TaskStarted OrderStepStarted:B OrderStepEnded:Success OrderNodeChanged:B TaskEnded TaskClosed TaskAdded",
			"OrderAdded:A TaskAdded")
	})
}

// Who wants it alone waits for those who share it, and nobody who comes later overtakes.
func TestSharedHoldersDoNotStarveAnExclusiveOne(t *testing.T) {
	onBoth(t, locking([]string{"+db"}, []string{"db"}), func(t *testing.T, b *bench) {
		for _, o := range [][2]string{{"/c", "s1"}, {"/c1", "x1"}, {"/c", "s2"}, {"/c", "s3"}, {"/c", "s4"}, {"/c", "s5"}, {"/c1", "x2"}} {
			b.on(o[0], o[1])
		}
		hold := func(want ...string) map[string]*queue.Lease {
			t.Helper()
			all := map[string]*queue.Lease{}
			for path, l := range b.running() {
				if l.Task.Order.Node == "A" {
					all[path] = l
				}
			}
			for _, path := range want {
				if all[path] == nil {
					t.Errorf("%s does not run", path)
				}
			}
			if len(all) != len(want) {
				t.Fatalf("%d run, want %v", len(all), want)
			}
			return all
		}
		one := hold("/c,s1")
		b.complete(one["/c,s1"], ok)
		alone := hold("/c1,x1")
		b.complete(alone["/c1,x1"], ok)
		two := hold("/c,s2", "/c,s3")
		b.complete(two["/c,s2"], ok)
		one = hold("/c,s4")
		b.complete(two["/c,s3"], ok)
		two = hold("/c,s5")
		b.complete(one["/c,s4"], ok)
		hold()
		b.complete(two["/c,s5"], ok)
		hold("/c1,x2")
		b.events()
	})
}

// When a lock is given back that many can hold together, all of them get it: some in the same write, the others by an alarm.
func TestManySharedHoldersGoOnAtOnce(t *testing.T) {
	onBoth(t, locking([]string{"a"}, []string{"+a"}), func(t *testing.T, b *bench) {
		b.add(nil)
		for i := range 20 {
			b.on("/c1", fmt.Sprint(i))
		}
		b.step("A", ok)
		b.now = b.now.Add(time.Second)
		b.sweep()
		b.events()
		if n := len(b.running()); n != 21 {
			t.Errorf("%d steps run, want 21", n)
		}
	})
}

// Whatever ends the step, or takes back its task, gives back its locks.
func TestLocksAreGivenBack(t *testing.T) {
	act := func(a order.Act) func(*bench) { return func(b *bench) { b.do(a, nil) } }
	for name, end := range map[string]func(*bench){
		"a setback":    func(b *bench) { b.step("A", failed) },
		"a suspension": act(order.Act{Kind: order.Suspend}),
		"a skip":       act(order.Act{Kind: order.Skip}),
		"another node": act(order.Act{Kind: order.SetNode, Node: "B"}),
		"a removal":    act(order.Act{Kind: order.Remove}),
		"a replacement": func(b *bench) {
			b.add(func(r *order.Request) { r.Replace, r.Node = true, "B" })
		},
		"a stopped chain": func(b *bench) {
			if err := b.StopChain(b.t.Context(), "/c", true); err != nil {
				b.t.Error(err)
			}
		},
		"a node that is stopped": func(b *bench) {
			if err := b.SetAction(b.t.Context(), "/c", "A", definition.ActionStop); err != nil {
				b.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, locking([]string{"db", "a"}, []string{"db"}, []string{"a"}), func(t *testing.T, b *bench) {
				b.add(nil)
				b.on("/c1", "next")
				b.on("/c2", "other")
				b.events()
				end(b)
				all := b.running()
				if all["/c1,next"] == nil || all["/c2,other"] == nil {
					t.Errorf("%d steps run, not those of the others", len(all))
				}
				b.events()
			})
		})
	}
}

// A step that is set back takes its lock when its time has come, behind those who came meanwhile.
func TestASetBackStepTakesItsLockAgain(t *testing.T) {
	onBoth(t, locking([]string{"db"}), func(t *testing.T, b *bench) {
		b.add(nil)
		b.step("A", failed)
		b.is(projection.SetBack, "A")
		b.on("/c", "2")
		b.events()
		b.now = b.now.Add(time.Minute)
		b.sweep()
		b.want("OrderWaiting:A:lock")
		b.is(projection.WaitingForResource, "A")
		b.step("A", ok)
		b.is(projection.Due, "A")
		b.events()
	})
}

// Who waits in line may leave it, and the line goes on.
func TestLeavingTheLine(t *testing.T) {
	onBoth(t, locking([]string{"db"}, []string{"+db"}), func(t *testing.T, b *bench) {
		b.on("/c1", "s1")
		b.add(nil) // wants it alone
		b.on("/c1", "s2")
		b.events()
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.want("OrderSuspended OrderNodeChanged:A OrderNodeChanged:A TaskAdded")
		if n := len(b.running()); n != 2 {
			t.Errorf("%d steps run, want 2", n)
		}
		b.do(order.Act{Kind: order.Resume}, nil)
		b.is(projection.WaitingForResource, "A")
		b.do(order.Act{Kind: order.Remove}, nil)
		b.events()
	})
}

// A lock that is not declared any more goes on by its name; a number that has changed counts for those who come.
func TestALockIsDeclaredAnew(t *testing.T) {
	declare := func(b *bench, locks ...definition.Lock) {
		b.declared.set = locking([]string{"+db"})
		b.declared.set.Locks = locks
	}
	onBoth(t, locking([]string{"+db"}), func(t *testing.T, b *bench) {
		for i := range 3 {
			b.on("/c", fmt.Sprint(i))
		}
		l := b.claim()
		declare(b)
		b.complete(l, ok)
		b.on("/c", "3")
		b.events()
		held := 0
		for _, l := range b.running() {
			if l.Task.Order.Node == "A" {
				held++
			}
		}
		if held != 3 {
			t.Errorf("%d hold the lock, want 3", held)
		}
		declare(b, definition.Lock{Name: "db", MaxShared: 1})
		b.on("/c", "4")
		b.events()
		if b.claim() != nil {
			t.Error("another one holds it")
		}
	})
}

// Orders that want the same locks in other orders all get them, one after the other.
func TestLocksWithoutDeadlock(t *testing.T) {
	onBoth(t, locking([]string{"a", "b"}, []string{"b", "a"}, []string{"b"}, []string{"+a", "+db"}, []string{"db", "+b"}), func(t *testing.T, b *bench) {
		const each = 6
		var adding sync.WaitGroup
		for i, chain := range []string{"/c", "/c1", "/c2", "/c3", "/c4"} {
			for n := range each {
				adding.Go(func() {
					if _, err := b.Add(t.Context(), nil, order.Request{Chain: chain, ID: fmt.Sprint(i, n), EndNode: "A"}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		adding.Wait()
		for done := 0; done < 5*each; {
			all := b.running()
			holders(t, all)
			if len(all) == 0 {
				t.Fatalf("nobody goes on after %d orders", done)
			}
			for _, l := range all {
				b.complete(l, ok)
				done++
			}
			b.now = b.now.Add(time.Second)
			b.sweep()
		}
		b.events()
	})
}

// holders compares the steps that run with what their locks allow.
func holders(t *testing.T, all map[string]*queue.Lease) {
	t.Helper()
	n := map[string]int{}
	for _, l := range all {
		n[l.Task.Order.Chain]++
	}
	switch {
	case n["/c"]+n["/c1"] > 1, n["/c"]+n["/c1"] == 1 && n["/c2"]+n["/c3"]+n["/c4"] > 0, n["/c2"] > 1, n["/c2"] == 1 && n["/c4"] > 0,
		n["/c4"] > 1, n["/c4"] == 1 && n["/c3"] > 0, n["/c3"] > 2:
		t.Errorf("these run together: %v", n)
	}
}

// Damaged orders at the head of a lock's line, more than are looked at at once, and one that is lost, are passed over by whoever gives the
// lock back, whose step ends, and by those who come later. Each is logged once, and no alarm stays.
func TestDamagedOrdersAtTheHeadOfALine(t *testing.T) {
	onBoth(t, locking([]string{"a"}), func(t *testing.T, b *bench) {
		const bad = 12
		b.sweep() // what is left behind was looked for; that is done once a minute
		b.on("/c", "1")
		b.on("/c", "gone")
		for i := range bad {
			b.on("/c", fmt.Sprint("d", i))
		}
		b.on("/c", "e")
		for i := range bad {
			b.damage(fmt.Sprint("order//c,d", i), "-")
		}
		gone := store.Delete(store.Key{Table: store.Work, Partition: "order//c,gone", Sort: "-"}, store.Always)
		if err := b.store.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{gone}}); err != nil {
			t.Fatal(err)
		}
		ends := func(ids ...string) {
			t.Helper()
			for l := b.claim(); l != nil; l = b.claim() {
				b.complete(l, ok)
			}
			b.absent(ids...)
		}
		ends("1", "e")
		for range 5 {
			b.now = b.now.Add(time.Second)
			b.sweep()
		}
		b.on("/c", "f")
		b.sweep()
		ends("f")
		for range 5 {
			b.now = b.now.Add(time.Second)
			b.sweep()
		}
		page, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: "orders-due"})
		if err != nil || len(page.Items) > 0 {
			t.Errorf("alarms are left: %v %v", page.Items, err)
		}
		if n := strings.Count(b.errors.String(), "is left out"); n != bad {
			t.Errorf("it is logged %d times, want %d: %s", n, bad, &b.errors)
		}
	})
}
