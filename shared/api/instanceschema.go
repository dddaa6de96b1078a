package api

import (
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
)

// This file describes what the operations of instances take and return.

const aboutWorkers = `A worker is any program that does the following; scripts/examples/worker.py in the source of Millrace is one of some 150 lines.

1. POST instances {"name":"w1","jobs":["/topics/mail/*"],"capacity":4}, which returns its id and its lease.
2. PUT instances/ID {} after each third of that lease. 404: register again. "draining": claim nothing more, and leave when all is done.
3. While it runs fewer tasks than its capacity: POST instances/ID/claims {"max":4,"wait":"10s"}, which returns claims as soon as there
   are some. Give it an Idempotency-Key of its own, and repeat it with that key until it gets a response: so a lost one costs no attempt.
4. For each claim: POST leases/TOKEN/heartbeat after each third of its lease, with progress and log lines if there are any.
   "stop": stop the work, and complete with cancel. 409: the lease is over; drop the work. It is over too when no heartbeat got
   a response for the length of the lease, counted from when the last one that did was sent: give up each after a third.
5. POST leases/TOKEN/complete {"result":"ok"}, or failed with a message. 409: it came too late; nothing was changed.
6. DELETE instances/ID at the end.

Steps 2 to 5 are also one request for all that it runs, which costs far less: POST instances/ID/exchange. That is what the example does.

A task may be run twice, by a worker that was cut off and by another; only one result is taken.`

func instanceExample() any {
	return map[string]any{"name": "w1", "jobs": []any{"/topics/mail/*"}, "capacity": 4}
}

func beatExample() any {
	return map[string]any{
		"progress": map[string]any{"step": 3, "steps": 10, "eta": "2026-03-01T00:00:00Z", "message": "page 3"},
		"logs":     []any{map[string]any{"level": "info", "message": "page 3 is done"}},
	}
}

func claimRequest() *schema {
	room := between("At most so many tasks; no more than the capacity", 1, maxClaims)
	room.Default = 1
	return object("", members{"max": room, "wait": span("How long to wait for a task; default 0, cut to what the host can")}, false)
}

func instanceLease() *schema {
	return &schema{Type: "number", Description: "For how many seconds the instance lasts without a request of its own"}
}

func instanceMembers() members {
	jobs := listed(&schema{Type: "string", Pattern: `^/(?:[^*]*/)?(?:[^*/][^*]*|\*\*?)?$`, MaxLength: membership.MaxPattern}, membership.MaxJobs)
	jobs.Description = "Paths of jobs: /a/b that one, /a/* those directly below /a, /a/** all below"
	return members{
		"name": textOf("Its own choice; need not be unique", 1, membership.MaxName), "jobs": jobs,
		"capacity": between("How many tasks it runs at once", 1, membership.MaxCapacity),
	}
}

func newInstanceSchema() *schema {
	return object("A process that runs tasks", instanceMembers(), false, "name", "jobs", "capacity")
}

func instanceChangeSchema() *schema {
	changed := instanceMembers()
	delete(changed, "name")
	return object("What it can do now; {} for no change", changed, false)
}

func instanceSchema() *schema {
	return object("A process that runs tasks", with(instanceMembers(), members{
		"id": text(""), "running": whole("Leases that it has", 0), "leader": yesNo(""),
		"expires_at": dateTime("Gone if it sends nothing until then"), "draining": yesNo("It is given no more tasks"),
	}), false, "id", "name", "jobs", "capacity", "running", "leader", "expires_at")
}

func claimSchema() *schema {
	return object("The right to run a task", members{
		"id": text("The task's id"), "token": text("For heartbeats and the result"), "job": text("The job's path"),
		"attempt": whole("Which start of the task this is", 1), "payload": {Description: "What the task was given: any JSON; of an order's step, the order's variables"},
		"order":      object("Whose step the task is", members{"path": text("/CHAIN,ORDER"), "nodeId": text("")}, false, "path", "nodeId"),
		"expires_at": dateTime("Lost if there is no heartbeat until then"), "lease": {Type: "number", Description: "Its length in seconds"},
	}, false, "id", "token", "job", "attempt", "expires_at", "lease")
}

func beatSchema() *schema {
	level := choice("", levels...)
	level.Default = "info"
	line := object("", members{"time": dateTime("Default: now"), "level": level, "message": text("")}, false, "message")
	return object("What a heartbeat tells", members{
		"progress": object("How far the task is", members{
			"step": between("Done so far", 0, 1<<31-1), "steps": between("In all", 0, 1<<31-1), "eta": dateTime("When it will be done"),
			"message": textOf("", 1, queue.MaxMessage),
		}, false, "step", "steps"),
		"logs": {Type: "array", Items: line, MaxItems: maxLines},
	}, false)
}

func resultSchema() *schema {
	return object("How an attempt ended", members{
		"result": choice("", outcomes...), "message": {Type: "string", Description: "Why; the first 2,000 bytes are kept", MinLength: 1},
		"retry_delay": span("Before the next attempt; default: the task's"), "output": {Description: "Of a success: any JSON, up to 256 KiB"},
		"variables": variablesSchema(),
	}, false, "result")
}
