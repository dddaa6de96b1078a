package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/task"
)

// drain lifts every rule and runs every task to its end, in the processes that are still running, so that a wrong cache
// shows.
func (r *engineRun) drain() {
	a := r.actor("drain", 0)
	for _, path := range ruled {
		for _, kind := range []rule.Kind{rule.Pause, rule.Block} {
			r.ruling(path, false)
			if err := a.home.now().SetRule(r.ctx, path, kind, false); err != nil {
				r.report("liveness", "a rule cannot be lifted when all is quiet: %v", err)
			}
		}
	}
	if r.plan.heap {
		r.heap(a)
	}
	for round := 0; round < 40; round++ {
		for _, h := range r.homes {
			e := h.now()
			if _, err := e.Sweep(r.ctx); err != nil {
				r.report("liveness", "a sweep fails when all is quiet: %v", err)
			}
			r.runAll(e)
		}
		if len(r.ledger.unfinished()) == 0 && len(r.ledger.remains()) == 0 {
			return
		}
		time.Sleep(leaseLength / 2)
	}
	for _, t := range r.ledger.unfinished() {
		r.report("stuck", "task %s of %s is %s for ever", t.ID, t.Job, t.State)
	}
	if left := r.ledger.remains(); len(left) > 0 {
		r.report("leak", "%d items are left when every task has ended: %s", len(left), left[0])
	}
}

// heap pauses many tasks at the head of a queue, and demands that one claim starts the task behind them.
func (r *engineRun) heap(a *actor) {
	e := a.home.now()
	demand := func(err error) {
		if err != nil {
			r.report("liveness", "tasks cannot be heaped when all is quiet: %v", err)
		}
	}
	demand(e.SetRule(r.ctx, "/heap", rule.Pause, true))
	for n := range 4 {
		news := make([]queue.New, 15)
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: "/heap", Priority: 9, Payload: fmt.Appendf(nil, `"heap-%d-%d"`, n, i)}
		}
		_, err := e.Enqueue(r.ctx, nil, news...)
		demand(err)
	}
	_, err := e.Enqueue(r.ctx, nil, queue.New{Dialect: task.Job, Job: "/plain", Priority: -9, Payload: []byte(`"behind"`)})
	demand(err)
	began, held := time.Now(), r.rulesInForce()
	leases, err := e.Claim(r.ctx, queue.Claimer{Instance: "drain", Queues: []string{"main"}}, 1)
	demand(err)
	if len(leases) == 0 {
		r.report("starved", "a claim starts nothing while a task is ready behind others that are held")
	}
	r.given(leases, began, held)
	for _, l := range leases {
		_, err := e.Complete(r.ctx, l.Token, queue.Result{Outcome: queue.OK})
		demand(err)
	}
	demand(e.SetRule(r.ctx, "/heap", rule.Pause, false))
}

// runAll claims and completes tasks until a claim returns none.
func (r *engineRun) runAll(e *engine) {
	for {
		began, held := time.Now(), r.rulesInForce()
		leases, err := e.Claim(r.ctx, queue.Claimer{Instance: "drain"}, 5)
		far, farErr := e.Claim(r.ctx, queue.Claimer{Instance: "drain" + roomy, Capacity: room, Jobs: []string{"/far/*"}}, 5)
		if err = errors.Join(err, farErr); err != nil {
			r.report("liveness", "a claim fails when all is quiet: %v", err)
		}
		leases = append(leases, far...)
		if len(leases) == 0 {
			return
		}
		r.given(leases, began, held)
		for i, l := range leases {
			if i == 0 {
				_, err := e.Complete(r.ctx, l.Token, queue.Result{Outcome: queue.OK, Output: bad.on(nil)})
				r.verifyRefused(err)
			}
			if _, err := e.Complete(r.ctx, l.Token, queue.Result{Outcome: queue.OK}); err != nil {
				r.report("liveness", "a task cannot be completed when all is quiet: %v", err)
			}
		}
	}
}

// verify compares what each call returned with what was committed.
func (r *engineRun) verify() {
	r.verifyRequests()
	r.verifyLeases()
	r.verifyFold()
}

// byLabel returns the UUIDs of all tasks by the label in their payload.
func (r *engineRun) byLabel() map[string][]string {
	found := map[string][]string{}
	for _, uuid := range r.ledger.order {
		t := &r.ledger.tasks[uuid][0].task
		label := string(t.Payload)
		if t.Apart > 0 {
			label = "" // its payload is an item of its own; only the id identifies it
		}
		label = strings.Trim(label, `"`)
		found[label] = append(found[label], uuid)
	}
	return found
}

func (r *engineRun) verifyRequests() {
	labels := r.byLabel()
	for label, uuids := range labels {
		if label != "" && !strings.HasPrefix(label, "once") && len(uuids) > 1 {
			r.report("acknowledged once", "%s was enqueued %d times", label, len(uuids))
		}
	}
	answers := map[string]string{}
	for _, q := range r.requests {
		if q.outcome == Refused && !q.once {
			for _, label := range q.labels {
				if len(labels[label]) > 0 {
					r.report("refused is absent", "%s was refused and is there", label)
				}
			}
		}
		if q.outcome != Acknowledged {
			continue
		}
		r.count("acknowledged")
		answer := fmt.Sprint(r.verifyAnswer(q.answer.Tasks))
		if !q.once {
			continue
		}
		r.count("once")
		key := q.labels[0] + " " + q.labels[len(q.labels)-1]
		if other, again := answers[key]; again && other != answer {
			r.report("once", "%s was answered %s and %s", key, other, answer)
		}
		answers[key] = answer
	}
}

// verifyAnswer checks that acknowledged tasks are there, and returns their ids.
func (r *engineRun) verifyAnswer(tasks []queue.Added) (ids []string) {
	for _, added := range tasks {
		ids = append(ids, string(added.Task.ID))
		if len(r.ledger.tasks[added.Task.ID.UUID()]) == 0 {
			r.report("acknowledged once", "task %s was acknowledged and is not there", added.Task.ID)
		}
		if added.Existing {
			r.count("existing")
		}
	}
	return ids
}

// verifyLeases checks claims and completions.
func (r *engineRun) verifyLeases() {
	tokens := map[string]bool{}
	for _, c := range r.claimed {
		if tokens[c.lease.Token] {
			r.report("lease", "the lease %s was given twice", c.lease.Token)
		}
		tokens[c.lease.Token] = true
		uuid := c.lease.Task.ID.UUID()
		at := slices.IndexFunc(r.ledger.tasks[uuid], func(m moment) bool {
			return m.task.State == task.Running && m.task.Lease == c.lease.Token
		})
		if at < 0 {
			r.report("lease", "the lease %s was answered and never committed", c.lease.Token)
			continue
		}
		if c.lease.Task.Queue == "strict" {
			r.verifyOrder(c, r.ledger.tasks[uuid][at].at)
		}
	}
	for _, c := range r.completed {
		applied := slices.ContainsFunc(r.ledger.tasks[c.lease.Task.ID.UUID()], func(m moment) bool { return m.task.Message == c.message })
		if c.known && !applied && c.state != task.Succeeded {
			r.report("acknowledged once", "the end of %s was acknowledged and is not there", c.lease.Task.ID)
		}
		if c.refused && applied {
			r.report("refused is absent", "the end of %s was refused and is there", c.lease.Task.ID)
		}
	}
}

// verifyOrder demands that no older task of an ordered queue was ready throughout the claim of a younger one.
func (r *engineRun) verifyOrder(c claimed, started time.Time) {
	visible := c.began.Add(-r.plan.faults.Apart) // all readers see a write as a whole only after that time
	for _, uuid := range r.ledger.order {
		t := &r.ledger.tasks[uuid][0].task
		if t.Queue == "strict" && uuid < c.lease.Task.ID.UUID() && r.ledger.queuedThrough(uuid, visible, started) {
			r.report("order", "%s was started while the older %s was ready since before the claim", c.lease.Task.ID, uuid)
		}
	}
}

// verifyFold checks "task is its events" and "cause": each task is the fold of its events, and each of them but the first is brought
// about by the one before it.
func (r *engineRun) verifyFold() {
	j := journal.Open(r.storeOf(r.connect("reader")), journal.Options{Timing: timing, Jitter: jitter(r.plan.seed, "reader")})
	defer func() { _ = j.Close() }()
	folded, last := map[string][]task.State{}, map[string]event.ID{}
	for after := event.ID(0); ; {
		answer, err := j.ReadAfter(r.ctx, journal.Request{After: after, Limit: 500, Causes: true})
		if err != nil {
			r.report("liveness", "the journal cannot be read when all is quiet: %v", err)
			return
		}
		for i := range answer.Events {
			e := &answer.Events[i]
			if e.Key.TaskID != "" {
				uuid := task.ID(e.Key.TaskID).UUID()
				folded[uuid] = append(folded[uuid], stateAfter(e))
				if before, again := last[uuid]; again && e.Cause.ID() != before {
					r.report("cause", "%s %d of task %s names %d as its cause, not %d", e.Type, e.ID, uuid, e.Cause.ID(), before)
				}
				last[uuid] = e.ID
			}
		}
		if after = answer.LastEventID; len(answer.Events) == 0 {
			break
		}
	}
	for _, uuid := range r.ledger.order {
		var committed []task.State
		for _, m := range r.ledger.tasks[uuid] {
			s := m.task.State
			if s.Queued() {
				s = task.Ready
			}
			committed = append(committed, s)
		}
		if want := withEnds(committed); !slices.Equal(folded[uuid], want) {
			r.report("task is its events", "task %s was %v, and its events say %v", uuid, want, folded[uuid])
		}
	}
}

// stateAfter returns the state after an event; any state in which a task is queued is returned as Ready.
func stateAfter(e *event.Event) task.State {
	switch e.Type {
	case event.TaskStarted:
		return task.Running
	case event.TaskClosed:
		return typed.ReadTaskClosed(e).State
	default: // TaskAdded, or the end of an attempt
		return task.Ready
	}
}

// withEnds adds the end of the last attempt, which has an event of its own before that of the task's end.
func withEnds(states []task.State) []task.State {
	var all []task.State
	for i, s := range states {
		if i == 0 && s == task.Running {
			all = append(all, task.Ready) // it was added and started in one write
		}
		if s.Final() && i > 0 && states[i-1] == task.Running {
			all = append(all, task.Ready)
		}
		all = append(all, s)
	}
	return all
}
