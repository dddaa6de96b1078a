package membership_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// TestATaskThatNobodyRunsWaitsAndSaysWhy: no other instance gets it, and it runs when an instance for its job registers, or
// when a registered one adds the job.
func TestATaskThatNobodyRunsWaitsAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, appear := range map[string]func(d *deployment, other *membership.Instance) *membership.Instance{
		"a new instance": func(d *deployment, _ *membership.Instance) *membership.Instance {
			return d.register("able", "/topics/rare/*")
		},
		"a new ability": func(d *deployment, other *membership.Instance) *membership.Instance {
			i, err := d.membership.Heartbeat(d.t.Context(), other.ID, membership.Change{Jobs: []string{"/topics/common", "/topics/**"}})
			if err != nil {
				d.t.Fatal(err)
			}
			return &i
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			other := d.register("other", "/topics/common")
			id := d.add("rare/kind", 1)
			d.add("common", 1)
			if leases := d.claim(other, 4); len(leases) != 1 || leases[0].Task.ID == id {
				t.Fatalf("the instance was given %d tasks, want the one that it can run", len(leases))
			}
			d.clock.at = d.clock.at.Add(24 * time.Hour)
			d.sweep()
			why, err := d.Why(t.Context(), id)
			if err != nil || why.Code != view.ReasonUnassigned || why.Reason != "It waits for an instance that runs /topics/rare/kind." {
				t.Errorf("Why = %+v, %v, want that it waits for an instance", why, err)
			}
			other = d.register("other", "/topics/common") // its lease ended a day ago
			if leases := d.claim(appear(d, other), 4); len(leases) != 1 || leases[0].Task.ID != id {
				t.Errorf("%d tasks were given to the instance that can run it, want the one", len(leases))
			}
		})
	}
}

// TestATaskThatKillsItsInstanceEndsAfterItsAttempts: each start counts as an attempt, also if no instance reports its end.
func TestATaskThatKillsItsInstanceEndsAfterItsAttempts(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	added, err := d.Enqueue(t.Context(), nil, queue.New{
		Dialect: task.Job, Job: "/topics/deadly", Attempts: 3, RetryDelay: time.Minute, Unique: "one",
		Concurrency: &task.Concurrency{Key: "k", Limit: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := added.Tasks[0].Task.ID
	starts := 0
	for range 10 {
		victim := d.register("victim", "/topics/**")
		for _, l := range d.claim(victim, 4) {
			starts++
			d.clock.at = d.clock.at.Add(l.Length + time.Second)
			d.sweep()
		}
		d.clock.at = d.clock.at.Add(time.Minute)
	}
	got, err := d.Get(t.Context(), id)
	if err != nil || got.State != task.Failed || got.Attempt != 3 || starts != 3 {
		t.Errorf("after %d starts it is %s, attempt %d, %v, want it failed after 3", starts, got.State, got.Attempt, err)
	}
	want := []string{
		"TaskAdded", "TaskStarted", "TaskEnded lost", "TaskStarted", "TaskEnded lost", "TaskStarted", "TaskEnded lost", "TaskClosed",
	}
	if diff := cmp.Diff(want, d.told(id)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// Its unique key and its place of the limit are free.
	next, err := d.Enqueue(t.Context(), nil, queue.New{
		Dialect: task.Job, Job: "/topics/deadly", Unique: "one", Concurrency: &task.Concurrency{Key: "k", Limit: 1},
	})
	if err != nil || next.Tasks[0].Existing || len(d.claim(d.register("next", "/topics/**"), 4)) != 1 {
		t.Errorf("the next one with its key does not run: %+v, %v", next, err)
	}
}
