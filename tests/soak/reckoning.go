package main

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/millrace/millrace/client"
)

// reckonTasks checks that each task that was acknowledged, and each that the journal has besides, was added once and ended once, as
// it must, and was started no more often than it may be.
func (l *ledger) reckonTasks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for u, one := range l.lives {
		id := u
		switch {
		case one.added != 1 || one.closed != 1 || one.running:
			l.complain("task %s (acknowledged: %t): added %d times, started %d, closed %d, running: %t",
				id, one.acked, one.added, one.starts, one.closed, one.running)
		case one.line >= 0 && one.highest > lines[one.line].attempts:
			l.complain("task %s of %s: %d attempts, at most %d", id, lines[one.line].path, one.highest, lines[one.line].attempts)
		case one.want != "" && one.state != one.want:
			l.complain("task %s of %s ended as %s after %d attempts, want %s", id, lines[one.line].path, one.state, one.highest, one.want)
		case one.state == "succeeded" && one.ran == 0 && l.reported(one):
			l.complain("task %s of %s succeeded, and nobody was seen to run it", id, lines[one.line].path)
		}
	}
}

// reported reports whether attempts of a task are reported by what runs them: those of commands are not.
func (l *ledger) reported(one *life) bool {
	return one.line >= 0 && lines[one.line].path != "/sources/commands/" && lines[one.line].path != "/canvases/c/S/command"
}

// reckonRest checks that the server has nothing left over.
func (k *clients) reckonRest(ctx context.Context) {
	for q, err := range k.c.Queues(ctx) {
		if err != nil {
			k.ledger.wrong("queues: %v", err)
			break
		}
		if q.Statistics.Queued != 0 || q.Statistics.Active != 0 || q.Suspended {
			k.ledger.wrong("the queue %s still has %d tasks that wait and %d that run; suspended: %t",
				q.Name, q.Statistics.Queued, q.Statistics.Active, q.Suspended)
		}
	}
	for _, kind := range []string{"QUEUED", "ACTIVE"} {
		for job, err := range k.c.Jobs(ctx, client.JobQuery{Type: kind}) {
			if err != nil {
				k.ledger.wrong("jobs that are %s: %v", kind, err)
				break
			}
			k.ledger.wrong("job %s of %s is still %s", job.ID, job.Job, job.State)
		}
	}
	for i, err := range k.c.Instances(ctx) {
		if err != nil {
			k.ledger.wrong("instances: %v", err)
			break
		}
		if i.Running != 0 {
			k.ledger.wrong("instance %s still runs %d tasks", i.Name, i.Running)
		}
	}
}

// reckonFollowers checks what followers saw, once they have come to the end of the journal.
func (k *clients) reckonFollowers(ctx context.Context, all []*follower) {
	final, err := k.c.Snapshot(ctx, objects)
	if err != nil {
		k.ledger.wrong("snapshot: %v", err)
		return
	}
	for _, f := range all {
		arrived := settle(ctx, drainTime, func() bool {
			at, err := f.at()
			return err != nil || at >= appends.lastID()
		})
		if at, err := f.at(); err != nil || !arrived {
			k.ledger.wrong("the follower of %s stands at %d of %d: %v", f.name, at, appends.lastID(), err)
			continue
		}
		if trouble := f.judge(final); trouble != "" {
			k.ledger.wrong("the follower of %s: %s", f.name, trouble)
		}
	}
}

// verify has the program examine the store of the stopped server.
func (c *cast) verify() (string, error) {
	out, err := exec.Command(c.plan.Binary, "check", "--data", filepath.Join(c.plan.Dir, "store")).CombinedOutput()
	return string(out), err
}
