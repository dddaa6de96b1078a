package membership_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// queues are definitions of queues alone: every job is one that instances run.
type queues []definition.Queue

// Current returns them.
func (q queues) Current(context.Context) (*definition.Set, error) {
	return &definition.Set{Queues: q}, nil
}

// trio is three instances, each of a server process of its own over the same store.
type trio struct {
	t         *testing.T
	clock     *clock
	servers   []*deployment
	instances []*membership.Instance
	running   [][]queue.Lease // of each instance
}

func three(t *testing.T, q definition.Queue) *trio {
	t.Helper()
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	base := shared{memory.New(memory.Options{})}
	all := &trio{t: t, clock: c, running: make([][]queue.Lease, 3)}
	for n := range all.running {
		d := openWith(t, base, c, queues{q})
		all.servers = append(all.servers, d)
		all.instances = append(all.instances, d.register(fmt.Sprint(n), "/topics/**"))
	}
	return all
}

// pass lets time pass, after which every instance claims as much as it can.
func (a *trio) pass(d time.Duration) {
	a.t.Helper()
	a.clock.at = a.clock.at.Add(d)
	for n, server := range a.servers {
		a.running[n] = append(a.running[n], server.claim(a.instances[n], 4)...)
	}
}

func (a *trio) all() []queue.Lease { return slices.Concat(a.running...) }

// end ends the oldest lease of the first instance that has one, on the next one's server, and returns its task.
func (a *trio) end(outcome queue.Outcome) *task.Task {
	a.t.Helper()
	for n := range a.running {
		if len(a.running[n]) == 0 {
			continue
		}
		l := a.running[n][0]
		a.running[n] = a.running[n][1:]
		if _, err := a.servers[(n+1)%3].Complete(a.t.Context(), l.Token, queue.Result{Outcome: outcome}); err != nil {
			a.t.Fatal(err)
		}
		return &l.Task
	}
	return nil
}

// lose lets the held leases expire.
func (a *trio) lose() {
	a.t.Helper()
	a.clock.at = a.clock.at.Add(definition.DefaultLease)
	a.running = make([][]queue.Lease, 3)
	a.servers[0].sweep()
}

// An instance that runs several jobs takes the best task of them all, by priority and then by creation, whether the store is
// exclusive or shared.
func TestAnInstanceTakesTheBestOfAllItsJobs(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]store.Store{"alone": memory.New(memory.Options{}), "shared": shared{memory.New(memory.Options{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			d := open(t, s, c)
			var want []task.Task
			for n := range 200 {
				c.at = c.at.Add(time.Millisecond)
				added, err := d.Enqueue(t.Context(), nil, queue.New{
					Dialect: task.Job, Job: fmt.Sprintf("/topics/p/%d", n*n%7), Priority: int64(n * 5 % 11),
				})
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, added.Tasks[0].Task)
			}
			slices.SortStableFunc(want, func(a, b task.Task) int { return cmp.Compare(b.Priority, a.Priority) })
			i := d.register("i", "/topics/p/*")
			for n := 0; n < len(want); {
				leases := d.claim(i, min(1+n%7, len(want)-n))
				if len(leases) == 0 {
					t.Fatalf("no task after %d, want %d", n, len(want))
				}
				for _, l := range leases {
					if l.Task.ID != want[n].ID {
						t.Fatalf("start %d is of priority %d of %s, want priority %d of %s",
							n, l.Task.Priority, l.Task.Job, want[n].Priority, want[n].Job)
					}
					n++
				}
				d.complete(leases...)
			}
		})
	}
}

// An ordered queue of several topics, claimed by several instances, runs one task at a time in the order of creation. One
// that has failed, or whose instance has died, keeps its place at the head.
func TestInstancesKeepTheOrderOfAQueueOfSeveralTopics(t *testing.T) {
	t.Parallel()
	a := three(t, definition.Queue{Name: "ordered", Topics: []string{"o/*"}, Type: definition.Ordered})
	a.pass(time.Second) // every server has read the jobs so far; more are added below
	var want, got []task.ID
	for n := range 40 {
		a.clock.at = a.clock.at.Add(time.Millisecond)
		want = append(want, a.servers[n%3].add([]string{"o/b", "o/c", "o/a"}[n*7%3], 1))
	}
	for n := 0; len(got) < len(want) && n < 400; n++ {
		a.pass(time.Second)
		switch running := a.all(); {
		case len(running) > 1:
			t.Fatalf("%d run at once", len(running))
		case len(running) == 0:
		case n%7 == 3:
			a.lose()
		case n%5 == 2:
			a.end(queue.Failed)
		default:
			got = append(got, a.end(queue.OK).ID)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("order of the ends (-want +got):\n%s", diff)
	}
}

// A round-robin queue of ten topics with a limit of five: instances with more free slots run five at once and never six, in
// turns, however many tasks one of the topics has and whichever instance dies.
func TestInstancesRunAsManyOfAQueueAsItMay(t *testing.T) {
	t.Parallel()
	a := three(t, definition.Queue{Name: "turns", Topics: []string{"r/."}, Type: definition.RoundRobin, MaxParallel: 5})
	a.servers[0].add("r/0", 300)
	for n := range 10 {
		a.servers[n%3].add(fmt.Sprintf("r/%d", n), 30)
	}
	counts := map[string]int{}
	for n := range 200 {
		a.pass(time.Second)
		if running := len(a.all()); running != 5 {
			t.Fatalf("%d run at once after %d ends, want 5", running, n)
		}
		if n%20 == 19 {
			a.lose()
			continue
		}
		counts[a.end(queue.OK).Job]++
	}
	for n := range 10 {
		if got := counts[fmt.Sprintf("/topics/r/%d", n)]; got < 15 || got > 25 {
			t.Errorf("topic %d had %d of the turns, want about a tenth of %v", n, got, counts)
		}
	}
}
