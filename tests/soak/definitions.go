package main

import (
	"fmt"
	"strings"
)

// pool is where a task runs.
type pool uint8

const (
	byServer pool = iota
	byWorkers
)

// line is what the checks need to know about the tasks of a job, or of those below a path.
type line struct {
	path     string // that of the job, or, with a slash at its end, of all below
	pool     pool
	attempts int
	limit    int    // how many run at once; 0: no limit
	ordered  bool   // one that is to be tried again keeps its place, and the others wait
	held     string // the name under which pauses and suspensions are noted that hold these tasks
	policy   policy // of the schedule that makes them
}

// policy says what becomes of the times of a schedule.
type policy uint8

const (
	noTicks  policy = iota
	everyOne        // one task each, whatever happens
	whileUp         // one task each, but for those around an outage: at most one
	atMost          // at most one: the schedule is suspended now and then
)

// lines are those of the definitions below, in any order: the longest path that fits counts.
var lines = []line{
	{path: "/sources/commands/", pool: byServer, attempts: 1},
	{path: "/sources/web/", pool: byServer, attempts: 1},
	{path: "/sources/hosts/", pool: byWorkers, attempts: 1},
	{path: "/sources/hosts/ticked", pool: byWorkers, attempts: 1, policy: whileUp},
	{path: "/canvases/c/S/command", pool: byServer, attempts: attempts},
	{path: "/canvases/c/S/web", pool: byServer, attempts: attempts},
	{path: "/canvases/c/S/hosts", pool: byWorkers, attempts: attempts},
	{path: "/canvases/c/S/paused", pool: byServer, attempts: attempts, held: "pause"},
	{path: "/canvases/c/S/blocked", pool: byWorkers, attempts: attempts, held: "block"},
	{path: "/topics/web/plain", pool: byServer, attempts: attempts},
	{path: "/topics/hosts/plain", pool: byWorkers, attempts: attempts},
	{path: "/topics/hosts/long", pool: byWorkers, attempts: attempts},
	{path: "/topics/hosts/limited", pool: byWorkers, attempts: attempts, limit: 2},
	{path: "/topics/narrow/one", pool: byWorkers, attempts: attempts, limit: 3},
	{path: "/topics/row/one", pool: byWorkers, attempts: attempts, limit: 1, ordered: true},
	{path: "/topics/fair/one", pool: byWorkers, attempts: attempts},
	{path: "/topics/held/one", pool: byWorkers, attempts: attempts, held: "suspend"},
	{path: "/topics/tick/all", pool: byWorkers, attempts: attempts, policy: everyOne},
	{path: "/topics/tick/once", pool: byServer, attempts: attempts, policy: whileUp},
	{path: "/topics/tick/skip", pool: byWorkers, attempts: attempts, policy: whileUp},
	{path: "/topics/tick/queued", pool: byWorkers, attempts: attempts, limit: 1, policy: everyOne},
	{path: "/topics/tick/dropped", pool: byWorkers, attempts: attempts, policy: everyOne},
	{path: "/topics/tick/sometimes", pool: byWorkers, attempts: attempts, policy: atMost},
}

// schedules are those of the definitions below.
var schedules = []string{"all", "once", "skip", "queued", "dropped", "sometimes", "sources/hosts/ticked"}

// collections is how many a source has.
const collections = 12

// definitions returns the server's configuration; tasks by HTTP go to target.
func definitions(target string) string {
	var named []string
	for n := range collections {
		named = append(named, fmt.Sprintf("{name: c%d}", n))
	}
	return strings.NewReplacer(
		"TARGET", target, "COLLECTIONS", strings.Join(named, ", "), "LEASE", lease.String(), "DELAY", retryDelay.String(),
		"EVENTS", fmt.Sprint(keptEvents), "ATTEMPTS", fmt.Sprint(attempts), "RETRIES", fmt.Sprint(attempts-1),
	).Replace(`
lease: LEASE
journal: {retention: {events: EVENTS}}
history: {age: 1m}
targets: {allow_private: true}
sources:
  commands: {target: {command: [cat]}, collections: [COLLECTIONS]}
  web: {target: {http: {url: "TARGET"}}, collections: [COLLECTIONS]}
  hosts: {target: {instances: true}, collections: [COLLECTIONS, {name: ticked, schedule: "* * * * * ?"}]}
handlers:
  - {canvas: c, space: S, name: command, target: {command: [cat]}, attempts: ATTEMPTS, retry_delay: DELAY}
  - {canvas: c, space: S, name: web, target: {http: {url: "TARGET"}}, attempts: ATTEMPTS, retry_delay: DELAY}
  - {canvas: c, space: S, name: hosts, target: {instances: true}, attempts: ATTEMPTS, retry_delay: DELAY}
  - {canvas: c, space: S, name: paused, target: {http: {url: "TARGET"}}, attempts: ATTEMPTS, retry_delay: DELAY}
  - {canvas: c, space: S, name: blocked, target: {instances: true}, attempts: ATTEMPTS, retry_delay: DELAY}
jobs:
  - {path: /topics/web/plain, target: {http: {url: "TARGET"}}}
  - {path: /topics/tick/once, target: {http: {url: "TARGET"}}}
queues:
  - {name: plain, topics: ["web/*", "hosts/*", "tick/*"], retries: RETRIES, retry_delay: DELAY}
  - {name: narrow, topics: ["narrow/*"], max_parallel: 3, retries: RETRIES, retry_delay: DELAY}
  - {name: row, topics: ["row/*"], type: ordered, retries: RETRIES, retry_delay: DELAY}
  - {name: fair, topics: ["fair/*"], type: round-robin, retries: RETRIES, retry_delay: DELAY, weights: {a: 3}}
  - {name: held, topics: ["held/*"], retries: RETRIES, retry_delay: DELAY, keep_jobs: true}
schedules:
  - {name: all, cron: "* * * * * ?", job: /topics/tick/all, misfire: all}
  - {name: once, cron: "* * * * * ?", job: /topics/tick/once, misfire: once}
  - {name: skip, cron: "* * * * * ?", job: /topics/tick/skip, misfire: skip}
  - {name: queued, cron: "* * * * * ?", job: /topics/tick/queued, misfire: all, overlap: queue}
  - {name: dropped, cron: "* * * * * ?", job: /topics/tick/dropped, misfire: all, overlap: skip}
  - {name: sometimes, cron: "* * * * * ?", job: /topics/tick/sometimes, misfire: skip}
`)
}

// lineOf returns the index of the line that a job's path belongs to; -1: none does.
func lineOf(path string) int {
	best := -1
	for i, l := range lines {
		if (path == l.path || strings.HasSuffix(l.path, "/") && strings.HasPrefix(path, l.path)) &&
			(best < 0 || len(l.path) > len(lines[best].path)) {
			best = i
		}
	}
	return best
}
