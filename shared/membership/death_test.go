package membership_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// deathCalls is how many calls of the store the death of an instance may cost for each task that it ran: to end the lease,
// with a read, a ticket and a write, and to find the task ready and start it elsewhere, which several share.
const deathCalls = 5

// TestADeathCostsWhatWasRunning kills one of three instances while a thousand tasks wait, and a million. What it ran runs
// elsewhere after its leases, for the same number of calls of the store, whether the store is exclusive or shared.
func TestADeathCostsWhatWasRunning(t *testing.T) {
	t.Parallel()
	few, many := 1000, 1_000_000
	if testing.Short() {
		many = 20_000
	}
	var small, large map[string]map[int]calls // in virtual time: what is read is read again when it is old
	synctest.Test(t, func(t *testing.T) { small = deaths(t, few) })
	synctest.Test(t, func(t *testing.T) { large = deaths(t, many) })
	if diff := cmp.Diff(small, large); diff != "" {
		t.Errorf("calls of the store for a death while %d (-) and %d (+) wait:\n%s", few, many, diff)
	}
	for way, of := range small {
		each := float64(of[8].Calls()-of[4].Calls()) / 4
		t.Logf("%s: %d calls for 4 running tasks, %.2f for each further one", way, of[4].Calls(), each)
		if each > deathCalls {
			t.Errorf("%s: each running task of a dead instance costs %.2f calls, want at most %d", way, each, deathCalls)
		}
	}
}

// calls counts the calls of the store's methods.
type calls struct{ Get, Query, Write, Reserve, Others int }

// Calls returns their sum.
func (c calls) Calls() int { return c.Get + c.Query + c.Write + c.Reserve + c.Others }

func callsOf(u meter.Usage) calls {
	c := calls{Get: u.Get.Calls, Query: u.Query.Calls, Write: u.Write.Calls, Reserve: u.Reserve.Calls}
	c.Others = u.Total().Calls - c.Calls()
	return c
}

// deaths returns what deaths cost over a backlog, by whether the store is exclusive and by how many tasks the dead one ran.
func deaths(t *testing.T, backlog int) map[string]map[int]calls {
	t.Helper()
	base, c := memory.New(memory.Options{}), &clock{time.Now().Add(-time.Hour)} // the store's date is ahead of it
	open(t, base, c).add("work", backlog)
	cost := map[string]map[int]calls{}
	for _, way := range []struct {
		name  string
		store store.Store
	}{{"alone", base}, {"shared", shared{base}}} {
		of := map[int]calls{}
		for _, running := range []int{4, 8} {
			of[running] = open(t, way.store, c).death(running)
		}
		cost[way.name] = of
	}
	return cost
}

// death lets one of three instances die while it runs tasks, and returns the calls until all of them run elsewhere.
func (d *deployment) death(running int) calls {
	d.t.Helper()
	dead := d.register("dead", "/topics/*")
	left := []*membership.Instance{d.register("left", "/topics/*"), d.register("right", "/topics/*")}
	lost := d.claim(dead, running)
	if len(lost) != running {
		d.t.Fatalf("%d tasks run, want %d", len(lost), running)
	}
	others := [][]queue.Lease{d.claim(left[0], 4), d.claim(left[1], 4)}
	d.clock.at = d.clock.at.Add(lost[0].Length - time.Second)
	for n, i := range left {
		d.beat(i, others[n]...)
		d.complete(others[n]...)
	}
	if s := d.sweep(); s.Lost != 0 {
		d.t.Errorf("%d leases were ended before their time", s.Lost)
	}
	d.clock.at = d.clock.at.Add(2 * time.Second)

	d.meter.Reset()
	if s := d.sweep(); s.Lost != running {
		d.t.Errorf("%d leases were ended, want %d", s.Lost, running)
	}
	d.clock.at = d.clock.at.Add(3 * time.Second) // until they are to be tried again
	again := map[task.ID]int{}
	for n := range running / 4 {
		others[n] = d.claim(left[n], 4)
		for _, l := range others[n] {
			again[l.Task.ID] = l.Task.Attempt
		}
	}
	cost := callsOf(d.meter.Reset())

	want := map[task.ID]int{}
	for _, l := range lost {
		want[l.Task.ID] = 2
	}
	if diff := cmp.Diff(want, again); diff != "" {
		d.t.Errorf("attempts of what runs elsewhere (-want +got):\n%s", diff)
	}
	for n := range running / 4 {
		d.complete(others[n]...)
	}
	if all, err := d.membership.List(d.t.Context()); err != nil || fmt.Sprint(names(all)) != "[left right]" {
		d.t.Errorf("instances = %v, %v, want those that are left", names(all), err)
	}
	for _, i := range left {
		if err := d.membership.Leave(d.t.Context(), i.ID); err != nil {
			d.t.Error(err)
		}
	}
	return cost
}

func names(all []membership.Instance) []string {
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}
