package definition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/strict"
)

// everyChain has each field of job chains, and of what belongs to them, at least once.
const everyChain = `
jobs:
  - {path: /folder/job, delay_order_after_setback: [{setback_count: 1, delay: 60s}, {setback_count: 4, delay: 5m, is_maximum: true}]}
job_chains:
  - path: /folder/chain
    max_orders: 10
    timeout: 1d
    max_visits: 5
    nodes:
      - {id: "100", job: /folder/job, next: 200, error: failed, on_error: setback, on: {7..9: review, "3": 300}, delay: 10s, timeout: 1h, action: stop, locks: [{name: db}, {name: ro, shared: true}]}
      - {id: review, prompt: {role: operator, deadline: 2d, default: failed, answers: {yes: 200, no: failed}}, action: process}
      - {id: 200, fork: {branches: {a: [{job: /folder/a}, {id: own, job: /folder/b, error: lost}, {id: lost}], b: [{chain: /inner}]}, on_failed: cancel}, join: all, next: 300}
      - {id: 300, fork: {each: files, job: /folder/check}, join: {at_least: 3}, error: failed}
      - {id: w, wait: {event: ParcelArrived, path: /parcels/, where: {order: "${id}", n: 2, ok: true}, timeout: 1d}, error: failed}
      - {id: pause, wait: {for: 1h}}
      - {id: due, wait: {until: "${due}"}}
      - {id: fixed, wait: {until: 2026-03-01T12:00:00Z}, next: sub}
      - {id: sub, chain: /inner, error: failed}
      - {id: end}
      - {id: failed}
  - {path: /inner, nodes: [{id: on, job: /topics/t, on: {-1: "off"}}, {id: "off"}]}
locks: [{name: db}, {name: ro, max_shared: 3}]
schedules: [{name: s, cron: "@daily", order: {chain: /inner, id: daily}}]
`

func TestReadChains(t *testing.T) {
	t.Parallel()
	got := read(t, everyChain)
	want := &definition.Set{
		Jobs: []definition.Job{{Path: "/folder/job", Setbacks: []definition.Setback{
			{Count: 1, Delay: time.Minute}, {Count: 4, Delay: 5 * time.Minute, IsMaximum: true},
		}}},
		JobChains: []definition.JobChain{{
			Path: "/folder/chain", MaxOrders: 10, Timeout: 24 * time.Hour, MaxVisits: 5,
			Nodes: []definition.Node{
				{
					ID: "100", Job: "/folder/job", Next: "200", Error: "failed", OnError: "setback", On: map[string]string{"7..9": "review", "3": "300"},
					Delay: 10 * time.Second, Timeout: time.Hour, Action: "stop", Locks: []definition.NodeLock{{Name: "db"}, {Name: "ro", Shared: true}},
				},
				{ID: "review", Action: "process", Prompt: &definition.Prompt{
					Role: "operator", Deadline: 48 * time.Hour, Default: "failed", Answers: map[string]string{"yes": "200", "no": "failed"},
				}},
				{ID: "200", Next: "300", Join: &definition.Join{}, Fork: &definition.Fork{OnFailed: "cancel", Branches: map[string][]definition.Node{
					"a": {{Job: "/folder/a"}, {ID: "own", Job: "/folder/b", Error: "lost"}, {ID: "lost"}},
					"b": {{Chain: "/inner"}},
				}}},
				{ID: "300", Error: "failed", Join: &definition.Join{AtLeast: 3}, Fork: &definition.Fork{Each: "files", Job: "/folder/check"}},
				{ID: "w", Error: "failed", Wait: &definition.Wait{
					Event: "ParcelArrived", Path: "/parcels/", Where: map[string]any{"order": "${id}", "n": 2.0, "ok": true}, Timeout: 24 * time.Hour,
				}},
				{ID: "pause", Wait: &definition.Wait{For: time.Hour}},
				{ID: "due", Wait: &definition.Wait{Until: "${due}"}},
				{ID: "fixed", Wait: &definition.Wait{Until: "2026-03-01T12:00:00Z"}, Next: "sub"},
				{ID: "sub", Chain: "/inner", Error: "failed"},
				{ID: "end"},
				{ID: "failed"},
			},
		}, {Path: "/inner", Nodes: []definition.Node{{ID: "on", Job: "/topics/t", On: map[string]string{"-1": "off"}}, {ID: "off"}}}},
		Locks:     []definition.Lock{{Name: "db"}, {Name: "ro", MaxShared: 3}},
		Schedules: []definition.Schedule{{Name: "s", Cron: "@daily", Order: &definition.ScheduledOrder{Chain: "/inner", ID: "daily"}}},
	}
	for name, pair := range map[string][2]any{
		"jobs": {want.Jobs, got.Jobs}, "chains": {want.JobChains, got.JobChains}, "locks": {want.Locks, got.Locks}, "schedules": {want.Schedules, got.Schedules},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	again := read(t, string(got.JSON()))
	if diff := cmp.Diff(string(got.JSON()), string(again.JSON())); diff != "" {
		t.Errorf("read of its own JSON (-want +got):\n%s", diff)
	}
	checkGraphs(t, got)
	if !strings.Contains(string(got.JSON()), `"join":"all"`) {
		t.Errorf("a join of all is not shown as such: %s", got.JSON())
	}
}

// manyLocks is a chain of a node that names so many locks.
func manyLocks(n int) string {
	var named []string
	for i := range n {
		named = append(named, fmt.Sprintf("{name: l%d}", i))
	}
	all := "[" + strings.Join(named, ", ") + "]"
	return "locks: " + all + "\njob_chains: [{path: /c, nodes: [{id: a, job: /j, locks: " + all + "}, {id: b}]}]"
}

func TestANodeHasUpToEightLocks(t *testing.T) {
	t.Parallel()
	if got := read(t, manyLocks(definition.MaxLocks)).JobChains[0].Nodes[0].Locks; len(got) != definition.MaxLocks {
		t.Errorf("%d locks, want %d", len(got), definition.MaxLocks)
	}
}

func TestReadRefusesChains(t *testing.T) {
	t.Parallel()
	job := func(path string) string { return "jobs: [{path: /j, delay_order_after_setback: " + path + "}]" }
	chain := func(nodes string) string { return "job_chains: [{path: /c, nodes: [" + nodes + "]}]" }
	node := func(fields string) string { return chain("{id: a, " + fields + "}, {id: b}") }
	const branches = "fork: {branches: {x: [{job: /j}], y: [{job: /j}]}}"
	tests := []struct{ text, want string }{
		{chain(""), "job_chains[0].nodes: want at least one node"},
		{"job_chains: [{path: /c, max_orders: 0, nodes: [{id: a}]}]", "job_chains[0].max_orders: want at least 1"},
		{"job_chains: [{path: /c, max_visits: 0, nodes: [{id: a}]}]", "job_chains[0].max_visits: want at least 1"},
		{"job_chains: [{path: /c, timeout: 0, nodes: [{id: a}]}]", "job_chains[0].timeout: want more than 0"},
		{"job_chains: [{path: /c, versions: 3, nodes: [{id: a}]}]", "job_chains[0].versions: unknown"},
		{chain("{job: /j}, {id: b}"), "nodes[0].id: is missing"},
		{chain("{id: a/b, job: /j}, {id: b}"), "nodes[0].id: a name has no slash"},
		{node("job: /j, wait: {for: 1s}"), "nodes[0]: a node has one of job, fork, prompt, wait and chain, this has job and wait"},
		{node("locks: [{name: l}]"), "nodes[0].locks: a node without job, fork, prompt, wait and chain is an end, which has no locks"},
		{node("job: /j, join: all"), "nodes[0].join: a node with a job has no join"},
		{node("wait: {for: 1s}, delay: 1s"), "nodes[0].delay: a node with a wait has no delay, only next, error, action"},
		{node("prompt: {role: admin, answers: {x: b}}, error: b"), "nodes[0].error: a node with a prompt has no error"},
		{node("chain: /d, on: {1: b}"), "nodes[0].on: a node with a chain has no on"},
		{node("job: /j, on_error: retry"), `nodes[0].on_error: "retry" is none of setback, suspend`},
		{node("job: /j, action: skip"), `nodes[0].action: "skip" is none of process, stop, next_state`},
		{node("job: /j, on: {x: b}"), `nodes[0].on.x: "x" is no return code such as 7, nor a range such as 7..9`},
		{node("job: /j, on: {7..: b}"), `nodes[0].on.7..: "7.." is no return code`},
		{node("job: /j, on: {9..7: b}"), "nodes[0].on.9..7: the range 9..7 has no return code"},
		{node("job: /j, on: {7..9: b, 8: b}"), "nodes[0].on.8: 8 overlaps 7..9"},
		{node("job: /j, on: {-3..3: b, 3..5: b}"), "nodes[0].on.3..5: 3..5 overlaps -3..3"},
		{node("job: /j, on: {7: c}"), `nodes[0].on.7: the chain has no node "c"`},
		{node("job: /j, locks: [{}]"), "nodes[0].locks[0].name: is missing"},
		{node("job: /j, locks: [{name: l}]"), `nodes[0].locks[0].name: no lock "l" is declared`},
		{"locks: [{name: l}]\n" + node("job: /j, locks: [{name: l}, {name: l, shared: true}]"), "nodes[0].locks[1]: the lock l is named twice"},
		{manyLocks(9), "nodes[0].locks[8]: a node has at most 8 locks; declare one lock for what steps always hold together"},
		{"locks: [{name: l}, {name: l}]", "locks[1]: the lock l is declared twice"},
		{"locks: [{name: l, max_shared: 0}]", "locks[0].max_shared: want at least 1"},

		{node("fork: {}"), "nodes[0].fork: want exactly one of branches, each"},
		{node("fork: {each: v, branches: {x: [{job: /j}]}, job: /j}"), "nodes[0].fork: want exactly one of branches, each"},
		{node("fork: {each: v}"), "nodes[0].fork.job: is missing"},
		{node("fork: {branches: {}}"), "nodes[0].fork.branches: want at least one branch"},
		{node("fork: {branches: {x: []}}"), "nodes[0].fork.branches.x: want at least one node"},
		{node("fork: {branches: {x/y: [{job: /j}]}}"), "a name has no slash"},
		{node("fork: {branches: {x!: [{job: /j}]}}"), "the name of a branch has no !"},
		{node("fork: {branches: {x: [{job: /j}]}, job: /j}"), "nodes[0].fork.job: branches name their own jobs"},
		{node("fork: {each: v, job: /j, on_failed: stop}"), `"stop" is none of wait, cancel`},
		{node(branches + ", join: some"), "nodes[0].join: want all, or at_least"},
		{node(branches + ", join: {}"), "nodes[0].join.at_least: is missing"},
		{node(branches + ", join: {at_least: 0}"), "nodes[0].join.at_least: want at least 1"},
		{node(branches + ", join: {at_least: 3}"), "nodes[0].join: at_least 3 is more than the fork has branches: 2"},
		{node("fork: {branches: {x: [{job: /j, next: b}]}}"), `fork.branches.x[0].next: the node "b" is in another branch, or outside`},
		{node("fork: {branches: {x: [{job: /j, next: c}]}}"), `fork.branches.x[0].next: the chain has no node "c"`},
		{node("fork: {branches: {x: [{id: b, job: /j}]}}"), "the node b is declared twice"},
		{node("fork: {branches: {x: [{id: c}], y: [{id: d, job: /j, next: c}]}}"), `branches.y[0].next: the node "c" is in another branch`},
		{node("fork: {branches: {x: [{job: /j, next: a/x/1}]}}"), "fork.branches.x[0]: no way leads to an end from the loop of a/x/1"},
		{node("fork: {branches: {x: [{id: c}, {job: /j}]}}"), "fork.branches.x[1]: no way leads to the node a/x/2"},

		{node("prompt: {}"), "nodes[0].prompt.role: is missing"},
		{node("prompt: {role: admin}"), "nodes[0].prompt.answers: is missing"},
		{node("prompt: {role: admin, answers: {}}"), "nodes[0].prompt.answers: want at least one answer"},
		{node("prompt: {role: boss, answers: {x: b}}"), `nodes[0].prompt.role: "boss" is none of viewer`},
		{node("prompt: {role: admin, answers: {x: c}}"), `nodes[0].prompt.answers.x: the chain has no node "c"`},
		{node("prompt: {role: admin, answers: {'': b}}"), "an answer has 1 to 255 bytes"},
		{node("prompt: {role: admin, deadline: 1d, answers: {x: b}}"), "nodes[0].prompt.default: is missing"},
		{node("prompt: {role: admin, default: c, answers: {x: b}}"), `nodes[0].prompt.default: the chain has no node "c"`},

		{node("wait: {}"), "nodes[0].wait: want exactly one of event, for, until"},
		{node("wait: {for: 1s, until: '${x}'}"), "nodes[0].wait: want exactly one of event, for, until"},
		{node("wait: {for: 0}"), "nodes[0].wait.for: want more than 0"},
		{node("wait: {for: 1s, timeout: 1s}"), "nodes[0].wait.timeout: only a wait for an event has timeout"},
		{node("wait: {until: tomorrow}"), `nodes[0].wait.until: "tomorrow" is neither a time`},
		{node("wait: {event: TaskVanished}"), `nodes[0].wait.event: "TaskVanished" is no type of events`},
		{node("wait: {event: 'A,B'}"), `"A,B" is no type of events`},
		{node("wait: {event: OrderOverview}"), `"OrderOverview" is no type of events`},
		{node("wait: {event: A, path: //}"), `nodes[0].wait.path: "//" is no query`},
		{node("wait: {event: A, where: [1]}"), "nodes[0].wait.where: want values"},
		{node("wait: {event: A, where: {x: " + strings.Repeat("x", 5000) + "}}"), "nodes[0].wait.where: more than 4096 bytes"},

		{node("chain: /d"), `nodes[0].chain: no job chain "/d" is declared`},
		{node("chain: /c"), "nodes[0].chain: the job chain /c goes through itself"},
		{"job_chains:\n- {path: /c, nodes: [{id: a, chain: /d}]}\n- {path: /d, nodes: [{id: a, chain: /c}]}", "f:3: job_chains[1].nodes[0].chain: the job chain /c goes through itself"},
		{"job_chains: [{path: /c, nodes: [{id: a, chain: /d, next: a, error: b}, {id: b}]}, {path: /d, nodes: [{id: a, job: /j}]}]", "job_chains[0]: no way leads to an end from a/a: no nested chain"},
		{"job_chains: [{path: /c, nodes: [{id: a, chain: /d}]}, {path: /d, nodes: [{id: a}]}]", "the job chain /d begins with an end"},

		{chain("{id: a}, {id: b}"), "nodes[1]: no way leads to the node b"},
		{chain("{id: a, job: /j, next: c}, {id: b, job: /j}, {id: c}"), "nodes[1]: no way leads to the node b"},
		{chain("{id: a, prompt: {role: admin, answers: {x: c}}}, {id: b}, {id: c}"), "nodes[1]: no way leads to the node b"},
		{chain("{id: a, job: /j, next: a}"), "nodes[0]: no way leads to an end from the loop of a"},
		{chain("{id: a, job: /j}, {id: b, job: /j, on: {1: c}}, {id: c, job: /j, next: b, error: b}, {id: d}"), "nodes[3]: no way leads to the node d"},

		{job("[{delay: 1s}]"), "delay_order_after_setback[0].setback_count: is missing"},
		{job("[{setback_count: 0, delay: 1s}]"), "setback_count: want at least 1"},
		{job("[{setback_count: 2, delay: 1s}, {setback_count: 2, delay: 3s}]"), "delay_order_after_setback[1]: setback_count 2 does not come after 2"},
		{job("[{setback_count: 2, is_maximum: true}, {setback_count: 3}]"), "delay_order_after_setback[1]: setback_count 3 is above the maximum, 2"},

		{"schedules: [{name: s, cron: '@daily', order: {chain: /c}}]", "order.id: is missing"},
		{"schedules: [{name: s, cron: '@daily', order: {chain: /c, id: x}}]", `schedules[0].order.chain: no job chain "/c" is declared`},
		{"schedules: [{name: s, cron: '@daily', order: {chain: /c, id: \"a\\n\"}}]", "the id of an order is UTF-8 without control characters"},
		{"schedules: [{name: s, cron: '@daily', job: /topics/t, order: {chain: /c, id: x}}]", "job and order cannot both be given"},
		{"schedules: [{name: s, cron: '@daily', payload: 1, order: {chain: /c, id: x}}]", "an order has no payload"},
		{"schedules: [{name: s, cron: '@daily'}]", "schedules[0].job: is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			_, err := definition.Read("f", []byte(tt.text))
			if _, malformed := errors.AsType[*strict.Error](err); !malformed || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read() = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// All mistakes of a chain are listed at once, each with the line of its node.
func TestReadListsEveryMistakeOfAChain(t *testing.T) {
	t.Parallel()
	_, err := definition.Read("f", []byte(`
job_chains:
  - path: /c
    nodes:
      - {id: a, job: /j, next: nowhere, error: f}
      - {id: lonely, job: /j, next: end}
      - {id: f, fork: {branches: {x: [{job: /j, error: lost}]}}, join: {at_least: 2}, error: loop}
      - {id: sub, chain: /none}
      - {id: end}
      - {id: loop, job: /j}
      - {id: loop2, job: /j, next: loop}
      - {id: end}
`))
	want := []string{
		`f:5: job_chains[0].nodes[0].next: the chain has no node "nowhere"`,
		`f:6: job_chains[0].nodes[1]: no way leads to the node lonely`,
		`f:7: job_chains[0].nodes[2].join: at_least 2 is more than the fork has branches: 1`,
		`f:7: job_chains[0].nodes[2].fork.branches.x[0].error: the chain has no node "lost"`,
		`f:8: job_chains[0].nodes[3].chain: no job chain "/none" is declared`,
		`f:10: job_chains[0].nodes[5]: no way leads to an end from the loop of loop, loop2`,
		`f:12: job_chains[0].nodes[7].id: the node end is declared twice`,
	}
	if got := strings.Split(fmt.Sprint(err), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestReadRefusesChainsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("job_chains: [{path: /c0, nodes: [{id: a, job: /j}]}")
	for i := 1; i <= 11; i++ { // each is twice as large as the one before
		fmt.Fprintf(&text, ", {path: /c%d, nodes: [{id: a, chain: /c%d}, {id: b, chain: /c%d}]}", i, i-1, i-1)
	}
	_, err := definition.Read("f", []byte(text.String()+"]"))
	if err == nil || !strings.Contains(err.Error(), "job_chains[10]: too large") || strings.Contains(err.Error(), "job_chains[9]") {
		t.Errorf("Read() = %v, want the chains of 1024 nodes and more refused", err)
	}
}

func TestLoopsWithAWayOut(t *testing.T) {
	t.Parallel()
	for _, nodes := range []string{
		"{id: a, job: /j, next: a, error: b}, {id: b}",
		"{id: a, job: /j, next: a, on: {1: b}}, {id: b}",
		"{id: a, job: /j}, {id: b, prompt: {role: viewer, answers: {again: a, enough: c}}}, {id: c}",
		"{id: a, job: /j, error: c}, {id: b, job: /j, next: a}, {id: c, job: /j}", // the last node's success is the end
		"{id: a, fork: {each: v, job: /j}, error: a}",
	} {
		if _, err := definition.Read("f", []byte("job_chains: [{path: /c, nodes: ["+nodes+"]}]")); err != nil {
			t.Errorf("%s: %v", nodes, err)
		}
	}
}
