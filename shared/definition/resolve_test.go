package definition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
)

const day = 24 * time.Hour

const resolved = `
sources: {crm: {target: {go: f}, collections: [{name: users}], timeout: 5m}}
handlers: [{canvas: c, space: s, name: n, target: {go: g}}, {canvas: c, space: s, name: m, attempts: 7, retry_delay: 1s, on_error: reject, lease: 9s}]
jobs:
  - {path: /topics/a/b, target: {go: h}}
  - {path: /topics/a/c, queue: slow, attempts: 3}
  - {path: /folder/job, queue: slow}
  - {path: /plain}
queues:
  - {name: q, topics: ["a/*"], retries: 2, retry_delay: 5s}
  - {name: slow, type: ordered, topics: ["*"], retries: -1, max_parallel: 9}
lease: 20s
`

func TestJobOf(t *testing.T) {
	t.Parallel()
	set := read(t, resolved)
	const lease = 20 * time.Second
	run := func(name string) definition.Target { return definition.Target{Go: name} }
	for path, want := range map[string]definition.Job{
		"/sources/crm/users": {Target: run("f"), Queue: "sync-tasks", Attempts: 1, Timeout: 5 * time.Minute, Lease: lease},
		"/canvases/c/s/n":    {Target: run("g"), Queue: "handler-events", Attempts: 3, RetryDelay: 5 * time.Minute, Timeout: day, Lease: lease},
		"/canvases/c/s/m":    {Queue: "handler-events", Attempts: 7, RetryDelay: time.Second, OnError: "reject", Timeout: day, Lease: 9 * time.Second},
		"/topics/a/b":        {Target: run("h"), Queue: "q", Attempts: 3, RetryDelay: 5 * time.Second, OnError: "reject", Timeout: day, Lease: lease},
		"/topics/a/c":        {Queue: "slow", Attempts: 3, RetryDelay: 2 * time.Second, OnError: "reject", Timeout: day, Lease: lease},
		"/folder/job":        {Queue: "slow", Attempts: -1, Timeout: day, Lease: lease},
		"/plain":             {Timeout: day, Lease: lease},
	} {
		want.Path = path
		got, ok := set.JobOf(path)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("JobOf(%s), declared %t (-want +got):\n%s", path, ok, diff)
		}
	}
}

func TestJobOfWhatIsNotDeclared(t *testing.T) {
	t.Parallel()
	set := read(t, resolved)
	for path, want := range map[string]definition.Job{
		"/sources/crm/other": {Timeout: day, Lease: 20 * time.Second},
		"/sources/crm":       {Timeout: day, Lease: 20 * time.Second},
		"/topics/a/x":        {Queue: "q", Attempts: 3, RetryDelay: 5 * time.Second, OnError: "reject", Timeout: day, Lease: 20 * time.Second},
		"/topics/b":          {Queue: "slow", Attempts: -1, RetryDelay: 2 * time.Second, OnError: "reject", Timeout: day, Lease: 20 * time.Second},
	} {
		got, ok := set.JobOf(path)
		if diff := cmp.Diff(want, got); diff != "" || ok {
			t.Errorf("JobOf(%s), declared %t (-want +got):\n%s", path, ok, diff)
		}
	}
	got, _ := new(definition.Set).JobOf("/topics/b")
	want := definition.Job{Queue: "main", Attempts: 11, RetryDelay: 2 * time.Second, OnError: "reject", Timeout: day, Lease: definition.DefaultLease}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("JobOf(a topic) of nothing (-want +got):\n%s", diff)
	}
}

func TestQueueOf(t *testing.T) {
	t.Parallel()
	set := read(t, resolved)
	for name, want := range map[string]definition.Queue{
		"slow":           {Type: definition.Ordered, MaxParallel: 1},
		"main":           {Type: definition.Unordered},
		"handler-events": {Type: definition.RoundRobin},
		"other":          {Type: definition.Unordered},
	} {
		got := set.QueueOf(name)
		if got.Name != name || got.Type != want.Type || got.MaxParallel != want.MaxParallel {
			t.Errorf("QueueOf(%s) = %+v, want %+v", name, got, want)
		}
	}
}

func TestQueueForTopic(t *testing.T) {
	t.Parallel()
	set := read(t, "queues: [{name: one, topics: [a, b/*]}, {name: two, topics: [a/*, b*]}, {name: three, topics: [c.]}]")
	for topic, want := range map[string]string{"a": "one", "a/b": "two", "b/c": "one", "c/d": "three", "c/d/e": "main", "d": "main"} {
		if got := set.QueueForTopic(topic); got != want {
			t.Errorf("QueueForTopic(%s) = %s, want %s", topic, got, want)
		}
	}
}

func TestTheHighestRankingQueueTakesATopic(t *testing.T) {
	t.Parallel()
	set := read(t, "queues: [{name: low, topics: [a/*], ranking: -1}, {name: first, topics: [a/*]}, {name: second, topics: [a/*]}, "+
		"{name: 'high-{0}', topics: [a/b*], ranking: 7}]")
	for topic, want := range map[string]string{"a/c": "first", "a/b/c": "high-c"} {
		if got := set.QueueForTopic(topic); got != want {
			t.Errorf("QueueForTopic(%s) = %s, want %s", topic, got, want)
		}
	}
}

func BenchmarkJobOf(b *testing.B) {
	set, err := definition.Read("f", []byte(resolved))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		set.JobOf("/sources/crm/users")
	}
}

// Tasks of a job that names no queue are of the queue main; what is declared for that holds for them.
func TestAJobWithoutAQueueHasTheRetriesOfMain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]definition.Job{
		"jobs: [{path: /a, target: {go: f}}]":                                                                      {},
		"jobs: [{path: /a, target: {go: f}}]\nqueues: [{name: main, retries: 4, retry_delay: 7s}]":                 {Attempts: 5, RetryDelay: 7 * time.Second},
		"jobs: [{path: /a, target: {go: f}, attempts: 2}]\nqueues: [{name: main, retries: 4, retry_delay: 7s}]":    {Attempts: 2, RetryDelay: 7 * time.Second},
		"jobs: [{path: /a, target: {go: f}, queue: q}]\nqueues: [{name: main, retries: 4}, {name: q, retries: 1}]": {Attempts: 2},
	} {
		set, err := definition.Read("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		job, _ := set.JobOf("/a")
		if job.Attempts != want.Attempts || job.RetryDelay != want.RetryDelay {
			t.Errorf("%s: %d attempts, %v apart, want %d, %v", text, job.Attempts, job.RetryDelay, want.Attempts, want.RetryDelay)
		}
	}
}
