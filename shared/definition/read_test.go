package definition_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/strict"
)

// everything has each field at least once.
const everything = `
sources:
  crm:
    target: {command: [sh, -c, "", x]}
    collections: [{name: users, schedule: "0 0/5 * ? * * *", timezone: Europe/Berlin, dst: quartz}, {name: "a b"}]
    timeout: 1m30s
    lease: 45
  web: {collections: [{name: all}], target: {http: {url: "https://example.com/run"}}}
handlers:
  - {canvas: shop, space: WORKER, name: mail, target: {go: mail}, attempts: -1, retry_delay: 5m, on_error: reject, timeout: 1h, lease: 7d}
jobs:
  - {path: /topics/a/b, target: {lambda: {arn: "arn:aws:lambda:eu-central-1:123456789012:function:run:live"}}, queue: q, timeout: PT10M}
  - {path: /folder/job, target: {instances: true}, attempts: 4, retry_delay: 200ms, on_error: retry, lease: 30s}
queues:
  - {name: q, topics: ["a/*", "c."], type: round-robin, max_parallel: 15, retries: -1, retry_delay: 0, keep_jobs: true, weights: {/topics/a/*: 3, k: 1}}
schedules:
  - {name: s, cron: "0 0 12 * * ?", timezone: UTC, dst: cron, job: /topics/a/b, payload: {z: 1, a: [1.50, "x", null, true, 0x10, 12345678901234567890]}, misfire: all, overlap: skip}
  - {name: t, cron: "@every 90s", job: /sources/crm/users}
job_chains:
  - {path: /folder/chain, nodes: [{id: "100", job: /folder/job, next: "100", error: failed}, {id: failed}]}
lease: 20s
`

func read(t *testing.T, text string) *definition.Set {
	t.Helper()
	set, err := definition.Read("millrace.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Read() = %v", err)
	}
	return set
}

func want() *definition.Set {
	endless, none := -1, time.Duration(0)
	return &definition.Set{
		Sources: map[string]definition.Source{
			"crm": {
				Target: definition.Target{Command: []string{"sh", "-c", "", "x"}},
				Collections: []definition.Collection{
					{Name: "users", Schedule: "0 0/5 * ? * * *", Timezone: "Europe/Berlin", DST: "quartz"}, {Name: "a b"},
				},
				Timeout: 90 * time.Second, Lease: 45 * time.Second,
			},
			"web": {
				Target:      definition.Target{HTTP: &definition.HTTPTarget{URL: "https://example.com/run"}},
				Collections: []definition.Collection{{Name: "all"}},
			},
		},
		Handlers: []definition.Handler{{
			Canvas: "shop", Space: "WORKER", Name: "mail", Target: definition.Target{Go: "mail"}, Attempts: -1,
			RetryDelay: 5 * time.Minute, OnError: "reject", Timeout: time.Hour, Lease: 7 * 24 * time.Hour,
		}},
		Jobs: []definition.Job{
			{
				Path: "/topics/a/b", Queue: "q", Timeout: 10 * time.Minute,
				Target: definition.Target{Lambda: &definition.LambdaTarget{ARN: "arn:aws:lambda:eu-central-1:123456789012:function:run:live"}},
			},
			{
				Path: "/folder/job", Target: definition.Target{Instances: true}, Attempts: 4, RetryDelay: 200 * time.Millisecond,
				OnError: "retry", Lease: 30 * time.Second,
			},
		},
		Queues: []definition.Queue{{
			Name: "q", Topics: []string{"a/*", "c."}, Type: definition.RoundRobin, MaxParallel: 15, Retries: &endless,
			RetryDelay: &none, KeepJobs: true, Weights: map[string]int{"/topics/a/*": 3, "k": 1},
		}},
		Schedules: []definition.Schedule{
			{
				Name: "s", Cron: "0 0 12 * * ?", Timezone: "UTC", DST: "cron", Job: "/topics/a/b", Misfire: "all", Overlap: "skip",
				Payload: []byte(`{"z":1,"a":[1.50,"x",null,true,16,12345678901234567890]}`),
			},
			{Name: "t", Cron: "@every 90s", Job: "/sources/crm/users"},
		},
		JobChains: []definition.JobChain{{Path: "/folder/chain", Nodes: []definition.Node{
			{ID: "100", Job: "/folder/job", Next: "100", Error: "failed"}, {ID: "failed"},
		}}},
		Lease: 20 * time.Second,
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	got := read(t, everything)
	if diff := cmp.Diff(string(want().JSON()), string(got.JSON())); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if again := read(t, string(got.JSON())); !again.Equal(got) {
		t.Errorf("read of its own JSON = %s, want %s", again.JSON(), got.JSON())
	}
}

func TestReadWhatIsOnlyJSON(t *testing.T) {
	t.Parallel()
	text := "{\n\t\"schedules\": [{\"name\": \"\\ud83d\\ude00\",\n\t\t\"cron\": \"@daily\", \"job\": \"\\/topics\\/a\"}]}"
	if got := read(t, text).Schedules[0]; got.Name != "😀" || got.Job != "/topics/a" {
		t.Errorf("Read() = %+v", got)
	}
	_, err := definition.Read("x", []byte(strings.Replace(text, "@daily", "@dayly", 1)))
	if err == nil || !strings.Contains(err.Error(), "x:3: schedules[0].cron: ") {
		t.Errorf("Read(bad cron) = %v, want it on line 3", err)
	}
}

func TestReadAShareOfTheCores(t *testing.T) {
	t.Parallel()
	got := read(t, "queues: [{name: a, max_parallel: 0.5}, {name: b, max_parallel: 0.0001}, {name: c, max_parallel: -1}]").Queues
	if got[0].MaxParallel < 1 || got[1].MaxParallel != 1 || got[2].MaxParallel != runtime.NumCPU() {
		t.Errorf("max_parallel = %d, %d, %d, want some, 1 and %d", got[0].MaxParallel, got[1].MaxParallel, got[2].MaxParallel, runtime.NumCPU())
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	tests := []struct{ text, want string }{
		{"", "1: nothing is said"},
		{"# nothing", "1: nothing is said"},
		{"[]", "1: want fields"},
		{"a: [", "not YAML: "},
		{"\njob: []", "2: job: unknown, want one of"},
		{"jobs: {}", "1: jobs: want a list"},
		{"jobs: [{}]", "1: jobs[0].path: is missing"},
		{"jobs: [{path: }]", "1: jobs[0].path: want a text"},
		{"jobs: [{path: a}]", "jobs[0].path: a path begins with /"},
		{"jobs: [{path: /a//b}]", "no empty segments"},
		{"jobs: [{path: /a/}]", "no empty segments"},
		{"jobs: [{path: /}]", "no empty segments"},
		{"jobs: [{path: /" + long + long + "}]", "at most 500 bytes"},
		{"jobs: [{path: /topics/a b}]", "a topic is of letters"},
		{"jobs: [{path: /sources/a/b}]", "declared under sources"},
		{"jobs: [{path: /canvases/a/b/c}]", "declared under handlers"},
		{"jobs:\n- {path: /a}\n- {path: /a}", "3: jobs[1]: the job /a is declared twice"},
		{"jobs: [{path: /a, queue: nowhere}]", `jobs[0].queue: no queue "nowhere" is declared`},
		{"jobs: [{path: /a, target: {}}]", "jobs[0].target: want exactly one of"},
		{"jobs: [{path: /a, target: {go: f, instances: true}}]", "want exactly one of"},
		{"jobs: [{path: /a, target: {instances: false}}]", "want true"},
		{"jobs: [{path: /a, target: {http: {}}}]", "url: is missing"},
		{"jobs: [{path: /a, target: {http: {url: example.com}}}]", "want a URL"},
		{"jobs: [{path: /a, target: {http: {url: 'ftp://example.com'}}}]", "want a URL"},
		{"jobs: [{path: /a, target: {http: {url: 'http:///x'}}}]", "want a URL"},
		{"jobs: [{path: /a, target: {command: ls}}]", "want a list"},
		{"jobs: [{path: /a, target: {command: []}}]", "want a program"},
		{"jobs: [{path: /a, target: {command: ['', a]}}]", "want a program"},
		{"jobs: [{path: /a, target: {command: [a, \"\\0\"]}}]", "no NUL"},
		{"jobs: [{path: /a, target: {command: [a, [b]]}}]", "command[1]: want a text"},
		{"jobs: [{path: /a, target: {lambda: {arn: run}}}]", "want the ARN of a function"},
		{"jobs: [{path: /a, attempts: 0}]", "want at least 1"},
		{"jobs: [{path: /a, attempts: -2}]", "want at least 1"},
		{"jobs: [{path: /a, attempts: 1.5}]", `"1.5" is not an integer`},
		{"jobs: [{path: /a, attempts: 99999999999}]", "is not an integer"},
		{"jobs: [{path: /a, timeout: soon}]", `"soon" is not a duration`},
		{"jobs: [{path: /a, lease: 0s}]", "want more than 0"},
		{"jobs: [{path: /a, on_error: panic}]", `"panic" is none of retry, reject`},
		{"sources: {a/b: {collections: []}}", "a name has no slash"},
		{"sources: {" + long + ": {collections: []}}", "1 to 255 bytes"},
		{"sources: {a: {collections: []}, a: {collections: []}}", "sources.a: given twice"},
		{"sources: {a: {}}", "sources.a.collections: is missing"},
		{"sources: {[a]: {}}", "want a text before the colon"},
		{"sources: {a: {collections: [{name: c}, {name: c}]}}", "the collection a/c is declared twice"},
		{"sources: {a: {collections: [{name: c/d}]}}", "a name has no slash"},
		{"sources: {a: {collections: [{name: c, schedule: '* * *'}]}}", "schedule: cron expression"},
		{"sources: {a: {collections: [{name: c, timezone: Mars/Base}]}}", "timezone: time zone"},
		{"handlers: [{canvas: a, space: b}]", "handlers[0].name: is missing"},
		{"handlers: [{canvas: a, space: b, name: c}, {canvas: a, space: b, name: c}]", "handler a/b/c is declared twice"},
		{"handlers: [{canvas: \"a\\n\", space: b, name: c}]", "no control characters"},
		{"queues: [{name: q}, {name: q}]", "the queue q is declared twice"},
		{"queues: [{name: q, type: fast}]", "is none of unordered, ordered, round-robin"},
		{"queues: [{name: q, max_parallel: 0}]", "is not a number above 0"},
		{"queues: [{name: q, max_parallel: -2}]", "is not a number above 0"},
		{"queues: [{name: q, ranking: high}]", "ranking: \"high\" is not an integer"},
		{"queues: [{name: q, max_parallel: 1.5}]", "want a whole number from 1"},
		{"queues: [{name: q, max_parallel: .inf}]", "is not a number"},
		{"queues: [{name: q, max_parallel: 1e99}]", "want a whole number from 1"},
		{`{"queues": [{"name": "q", "max_parallel": "2"}]}`, "max_parallel: want a number"},
		{`{"queues": [{"name": 5}]}`, "name: want a text"},
		{`{"queues": [{"name": "q", "keep_jobs": "true"}]}`, "keep_jobs: want true or false"},
		{`{"queues": [{"name": "q", "retries": "2"}]}`, "retries: want a number"},
		{`{"lease": true}`, "lease: want a duration"},
		{`{"lease": null}`, "lease: want a duration"},
		{"queues: [{name: q, retries: -2}]", "want at least 0"},
		{"queues: [{name: q, retry_delay: -1s}]", "negative"},
		{"queues: [{name: q, keep_jobs: yes}]", "neither true nor false"},
		{"queues: [{name: q, weights: {a: 0}}]", "weights.a: want a weight of at least 1"},
		{"queues: [{name: q, weights: {a*: 1}}]", "a pattern ends in"},
		{"queues: [{name: q, topics: [a/*/b]}]", "is no topic"},
		{"queues: [{name: q, topics: [.]}]", "is no topic"},
		{"schedules: [{name: s, cron: '@daily', job: /a}]", `schedules[0].job: no job "/a" is declared`},
		{"schedules: [{name: s, cron: '@daily', job: /sources/a/b}]", "no job"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/}]", "no job"},
		{"schedules: [{name: s}]", "cron: is missing"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/a, misfire: never}]", "is none of skip, once, all"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/a, payload: }]", "want a value"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/a, payload: {a: 1, a: 2}}]", `"a" is given twice`},
		{"schedules: [{name: s, cron: '@daily', job: /topics/a, payload: {a: .nan}}]", "JSON has no number"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/a, payload: &p [*p]}]", "is nested deeper than 100 levels"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/a, payload: {<<: {a: 1}}}]", "merge keys"},
		{"job_chains: [{path: /c}]", "nodes: is missing"},
		{"job_chains: [{path: '/c,1', nodes: []}]", "no comma"},
		{"job_chains: [{path: /c, nodes: [{id: a}, {id: a}]}]", "the node a is declared twice"},
		{"job_chains: [{path: /c, nodes: [{id: a, job: /j, next: b}]}]", `nodes[0].next: the chain has no node "b"`},
		{"job_chains: [{path: /c, nodes: [{id: a, job: /j, error: b}]}]", `nodes[0].error: the chain has no node "b"`},
		{"job_chains: [{path: /c, nodes: [{id: a, next: a}]}]", "is an end"},
		{"job_chains: [{path: /c, nodes: [{id: a, job: j}]}]", "begins with /"},
		{"job_chains: [{path: /c, nodes: []}, {path: /c, nodes: []}]", "the job chain /c is declared twice"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			set, err := definition.Read("f", []byte(tt.text))
			var malformed *strict.Error
			if !errors.As(err, &malformed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read(%q) = %v, %v, want an error with %q", tt.text, set, err, tt.want)
			}
		})
	}
}

func TestReadListsEveryMistakeByLine(t *testing.T) {
	t.Parallel()
	_, err := definition.Read("millrace.yaml", []byte(`
schedules:
  - {name: s, cron: "@hurly", job: /nowhere}
jobs:
  - {path: a}
tokens: []
queues:
  - {name: q, retries: many}
`))
	want := []string{"3: schedules[0].cron", "3: schedules[0].job", "5: jobs[0].path", "6: tokens", "8: queues[0].retries"}
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != len(want) {
		t.Fatalf("Read() = %v, want %d mistakes", err, len(want))
	}
	for i, prefix := range want {
		if !strings.HasPrefix(lines[i], "millrace.yaml:"+prefix+": ") {
			t.Errorf("mistake %d is %q, want %q", i, lines[i], prefix)
		}
	}
}

func TestReadRefusesTheServersSections(t *testing.T) {
	t.Parallel()
	_, err := definition.Read("f", []byte("lease: 3s\ntokens: []\njournal: {}\n"))
	var only *definition.FileOnly
	if !errors.As(err, &only) || len(only.Mistakes) != 2 || only.Mistakes[0].Line != 2 {
		t.Errorf("Read() = %v, want FileOnly with two sections", err)
	}
}

// A small text must not cause much work by aliases of aliases.
func TestReadBoundsAliases(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("jobs:\n- &n {path: /a}\n")
	bomb.WriteString("job_chains:\n- path: /c\n  nodes: &l [" + strings.Repeat("{id: a},", 3000) + "]\n")
	for range 1000 {
		bomb.WriteString("- {path: /c, nodes: *l}\n")
	}
	_, err := definition.Read("f", []byte(bomb.String()))
	if err == nil || !strings.Contains(err.Error(), "too large with all its aliases") {
		t.Errorf("Read(bomb) is not bounded: %.200v", err)
	}
	_, err = definition.Read("f", []byte("schedules: [{name: s, cron: '@daily', job: /topics/a, payload: [&a [x,x,x,x,x,x,x,x], "+
		"&b [*a,*a,*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b,*b,*b], &d [*c,*c,*c,*c,*c,*c,*c,*c], &e [*d,*d,*d,*d,*d,*d,*d,*d], "+
		"&f [*e,*e,*e,*e,*e,*e,*e,*e], &g [*f,*f,*f,*f,*f,*f,*f,*f]]}]"))
	if err == nil || !strings.Contains(err.Error(), "more than 262144 bytes") {
		t.Errorf("Read(payload bomb) = %.200v, want it bounded", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(everything)
	f.Add(everyChain)
	f.Add("jobs: [{path: &a /x}, {path: *a}]")
	f.Add(`{"sources":{"a":{"collections":[]}}}`)
	examples, _ := filepath.Glob("../../*.yaml")
	for _, name := range examples {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := definition.Read("f", []byte(text))
		if err != nil {
			return
		}
		again, err := definition.Read("f", set.JSON())
		if err != nil || !again.Equal(set) {
			t.Errorf("Read(%q) does not read its own JSON %s: %v", text, set.JSON(), err)
		}
		checkGraphs(t, set)
	})
}

// TestTimesInJSON: a date has six decimals and is in UTC, whatever its form in the file.
func TestTimesInJSON(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"2099-03-01T12:00:00Z": "2099-03-01T12:00:00.000000Z", "2099-03-01T12:00:00.5+01:00": "2099-03-01T11:00:00.500000Z",
		"2099-03-01T12:00:00.123456789Z": "2099-03-01T12:00:00.123456Z",
	} {
		set, err := definition.Read("f", []byte(`{"schedules": [{"name": "s", "date": "`+written+`", "job": "/topics/t"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(set.JSON()); !strings.Contains(got, `"date":"`+want+`"`) {
			t.Errorf("%s is shown as %s, want %s", written, got, want)
		}
	}
}
