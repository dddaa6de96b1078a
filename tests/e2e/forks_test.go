package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// forked is a chain with a fork for each element of a list, and one with branches within.
const forked = `
jobs:
  - {path: /check, attempts: 20, lease: 2s, target: {command: ["true"]}}
  - {path: /fail, target: {command: ["false"]}}
job_chains:
  - path: /fork/all
    nodes:
      - {id: each, fork: {each: files, job: /check}, error: bad}
      - {id: both, fork: {branches: {a: [{job: /check}, {job: /check}], b: [{job: /fail}]}}, join: {at_least: 1}, error: bad}
      - {id: end}
      - {id: bad}
`

// TestAForkIsJoined: an order waits for its children, and goes on once, though the server is killed again and again.
func TestAForkIsJoined(t *testing.T) {
	t.Parallel()
	joins(t, 100, 3, embedded(t))
}

// TestAForkIsJoinedOnDynamoDB is the same on a store that processes share.
func TestAForkIsJoinedOnDynamoDB(t *testing.T) {
	t.Parallel()
	joins(t, 20, 1, "dynamodb:"+tables(t), onLocalStack(t))
}

func joins(t *testing.T, children, kills int, store string, change ...func(*process.Server)) {
	t.Helper()
	file := write(t, "millrace.yaml", forked)
	s := serve(t, store, append(change, func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG="+file) })...)
	var files []string
	for i := range children {
		files = append(files, fmt.Sprintf(`"file %d"`, i))
	}
	order := `{"id":"1","variables":{"files":[` + strings.Join(files, ",") + `]}}`
	status, made := tell(t, s, "POST", "/api/v1/orders/%2Ffork%2Fall", order)
	if status != http.StatusCreated || !strings.Contains(made, `"obstacles":[{"TYPE":"Join"}]`) {
		t.Fatalf("the order does not wait for its children: %d %s", status, made)
	}
	events := map[string]int{}
	read := func() {
		_, text := tell(t, s, "GET", "/jobscheduler/master/api/order/fork/?return=Event&after=0&timeout=0&limit=100000", "")
		var answer struct {
			EventSnapshots []struct {
				TYPE, Key string
				Succeeded int
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		clear(events)
		for _, e := range answer.EventSnapshots {
			events[e.TYPE]++
			events[e.TYPE+" "+e.Key]++
			if e.TYPE == "OrderJoined" {
				events[fmt.Sprintf("OrderJoined with %d", e.Succeeded)]++
			}
		}
	}
	for kill := range kills {
		eventually(t, "some children have ended", func() bool {
			read()
			return events["OrderFinished"] >= (kill+1)*children/(kills+2)
		})
		if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the order is finished", func() bool {
		read()
		return events["OrderFinished /fork/all,1"] == 1
	})
	for e, want := range map[string]int{
		"OrderForked": 2, "OrderJoined": 2, fmt.Sprintf("OrderJoined with %d", children): 1, "OrderAdded": children + 3, "OrderAdded /fork/all,1!0": 1,
		"OrderFinished /fork/all,1!0": 1,
	} {
		if events[e] != want {
			t.Errorf("%d times %s, want %d", events[e], e, want)
		}
	}
}
