package membership_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// nothing is a set of definitions that declares nothing: every job is one that instances run.
type nothing struct{}

// Current returns an empty set.
func (nothing) Current(context.Context) (*definition.Set, error) { return &definition.Set{}, nil }

// deployment is one server process with tasks and instances, over a store that counts its calls.
type deployment struct {
	*queue.Queue
	membership *membership.Membership
	journal    *journal.Journal
	t          *testing.T
	meter      *meter.Meter
	clock      *clock
}

// clock is set by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// shared is a store that other processes reach too.
type shared struct{ store.Store }

// Exclusive returns false.
func (shared) Exclusive() bool { return false }

// deploy returns a process over a store of its own.
func deploy(t *testing.T) *deployment {
	t.Helper()
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return open(t, memory.New(memory.Options{}), c)
}

func open(t *testing.T, s store.Store, c *clock) *deployment {
	t.Helper()
	return openWith(t, s, c, nothing{})
}

func openWith(t *testing.T, s store.Store, c *clock, definitions queue.Definitions) *deployment {
	t.Helper()
	d := &deployment{t: t, meter: meter.New(s), clock: c}
	d.journal = journal.Open(d.meter, journal.Options{Now: c.now, Folds: projection.Folds()})
	t.Cleanup(func() { _ = d.journal.Close() })
	d.Queue = queue.Open(queue.Options{Store: d.meter, Journal: d.journal, Definitions: definitions, Now: c.now})
	d.membership = membership.Open(membership.Options{Store: d.meter, Now: c.now})
	return d
}

func (d *deployment) register(name string, jobs ...string) *membership.Instance {
	d.t.Helper()
	i, err := d.membership.Register(d.t.Context(), membership.New{Name: name, Jobs: jobs, Capacity: 8})
	if err != nil {
		d.t.Fatal(err)
	}
	return &i
}

// claim claims for an instance.
func (d *deployment) claim(i *membership.Instance, max int) []queue.Lease {
	d.t.Helper()
	leases, err := d.Claim(d.t.Context(), queue.Claimer{Instance: i.Claimer(), Capacity: i.Capacity, Jobs: i.Jobs}, max)
	if err != nil {
		d.t.Fatal(err)
	}
	return leases
}

// complete ends leases with success.
func (d *deployment) complete(leases ...queue.Lease) {
	d.t.Helper()
	for _, l := range leases {
		if _, err := d.Complete(d.t.Context(), l.Token, queue.Result{Outcome: queue.OK}); err != nil {
			d.t.Fatal(err)
		}
	}
}

// beat sends the heartbeats of an instance and of what it runs.
func (d *deployment) beat(i *membership.Instance, leases ...queue.Lease) {
	d.t.Helper()
	if _, err := d.membership.Heartbeat(d.t.Context(), i.ID, membership.Change{}); err != nil {
		d.t.Fatal(err)
	}
	for _, l := range leases {
		if _, err := d.Heartbeat(d.t.Context(), l.Token, queue.Beat{}); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *deployment) sweep() queue.Swept {
	d.t.Helper()
	s, err := d.Sweep(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// add adds n tasks of a topic, and returns the id of the last.
func (d *deployment) add(topic string, n int) (last task.ID) {
	d.t.Helper()
	for n > 0 {
		news := make([]queue.New, min(n, queue.MaxBatch))
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: queue.TopicPath(topic), Payload: fmt.Appendf(nil, "%d", n-i)}
		}
		added, err := d.Enqueue(d.t.Context(), nil, news...)
		if err != nil {
			d.t.Fatal(err)
		}
		last = added.Tasks[len(news)-1].Task.ID
		n -= len(news)
	}
	return last
}

// told returns the journal's events of a task, in order: their types, with the outcome of each attempt.
func (d *deployment) told(id task.ID) []string {
	d.t.Helper()
	answer, err := d.journal.ReadAfter(d.t.Context(), journal.Request{Match: func(e *event.Event) bool { return e.Key.TaskID == string(id) }})
	if err != nil {
		d.t.Fatal(err)
	}
	var told []string
	for i := range answer.Events {
		e := &answer.Events[i]
		line := e.Type
		if e.Type == event.TaskEnded {
			line += " " + string(typed.ReadTaskEnded(e).Outcome)
		}
		told = append(told, line)
	}
	return told
}
