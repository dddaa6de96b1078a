package account_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// claim is a task that an instance is to run.
type claim struct{ ID, Token string }

// exchanged is what an exchange of an instance returns.
type exchanged struct {
	Claims  []claim
	Results []struct{ State string }
	Stops   []string
}

// exchange runs an instance of jobs that wait in an ordered queue: it gets them in their order, reports a line of log, and stops the last
// when it is told to.
func (s *stack) exchange(t *testing.T) {
	var instance struct{ ID string }
	s.ask(t, "POST", "/api/v1/instances", `{"name":"lane","jobs":["/topics/lane"],"capacity":4}`, http.StatusCreated, &instance)
	var jobs []struct{ ID, Queue string }
	s.ask(t, "POST", "/api/v1/jobs:batch", `[{"topic":"lane"},{"topic":"lane"},{"topic":"lane"}]`, http.StatusCreated, &jobs)
	path := "/api/v1/instances/" + instance.ID + "/exchange"
	var got exchanged
	s.ask(t, "POST", path, `{"seq":1,"max":4,"wait":"20s"}`, http.StatusOK, &got)
	for seq, want := range jobs { // one at a time
		if len(got.Claims) != 1 || got.Claims[0].ID != want.ID {
			t.Fatalf("claims %d are %+v, want %s of %+v", seq, got.Claims, want.ID, jobs)
		}
		if seq == 2 {
			break
		}
		body := `{"seq":%d,"max":4,"wait":"20s","beats":[{"token":"%[2]s","logs":[{"message":"on the lane"}]}],"results":[{"token":"%[2]s","result":"ok"}]}`
		next := exchanged{}
		s.ask(t, "POST", path, fmt.Sprintf(body, seq+2, got.Claims[0].Token), http.StatusOK, &next)
		if len(next.Results) != 1 || next.Results[0].State != "SUCCEEDED" {
			t.Errorf("the result of %s is %+v", want.ID, next.Results)
		}
		if len(next.Claims) == 0 { // the response with a result does not wait
			s.ask(t, "POST", path, fmt.Sprintf(`{"seq":%d,"max":4,"wait":"20s"}`, seq+20), http.StatusOK, &next)
		}
		got = next
	}
	var logs struct{ Logs []struct{ Message string } }
	if s.ask(t, "GET", "/api/v1/tasks/"+jobs[0].ID+"/logs", "", http.StatusOK, &logs); len(logs.Logs) != 1 || logs.Logs[0].Message != "on the lane" {
		t.Errorf("the log is %+v", logs)
	}
	token := got.Claims[0].Token
	s.ask(t, "POST", "/api/v1/jobs/"+jobs[2].ID+"/stop", "", http.StatusNoContent, nil)
	if s.ask(t, "POST", path, `{"seq":50,"wait":"20s"}`, http.StatusOK, &got); !slices.Equal(got.Stops, []string{token}) {
		t.Errorf("to be stopped: %v, want %s", got.Stops, token)
	}
	s.ask(t, "POST", path, `{"seq":51,"results":[{"token":"`+token+`","result":"cancel"}]}`, http.StatusOK, &got)
	var job struct{ State string }
	if s.ask(t, "GET", "/api/v1/jobs/"+jobs[2].ID, "", http.StatusOK, &job); job.State != "STOPPED" && job.State != "CANCELLED" {
		t.Errorf("what was stopped is %s", job.State)
	}
}

// task makes a sync task, which there is once only, and cancels it.
func (s *stack) task(t *testing.T) {
	s.ask(t, "PUT", "/api/v1/definitions?dry_run=true", `{"sources":{"crm":{"target":{"instances":true},"collections":[{}]}}}`, http.StatusBadRequest, nil)
	more := `{"sources":{"crm":{"target":{"instances":true},"collections":[{"name":"users"}]}},` + definitions[1:]
	var changes struct{ Added, Removed []string }
	for _, dry := range []string{"?dry_run=true", ""} { // which changes nothing, so that both say the same
		if s.ask(t, "PUT", "/api/v1/definitions"+dry, more, http.StatusOK, &changes); !slices.Contains(changes.Added, "Source:/crm") {
			t.Errorf("%q adds %v", dry, changes.Added)
		}
	}
	var made, again struct {
		ID string `json:"task_id"`
	}
	s.ask(t, "POST", "/api/v1/tasks?source=crm&collection=users", "", http.StatusCreated, &made)
	if s.ask(t, "POST", "/tasks?source=crm&collection=users", "", http.StatusOK, &again); again != made {
		t.Errorf("two tasks, %s and %s", made.ID, again.ID)
	}
	s.ask(t, "POST", "/api/v1/tasks/"+made.ID+"/cancel", "", http.StatusOK, nil)
	s.ask(t, "POST", "/api/v1/tasks/"+made.ID+"/cancel", "", http.StatusConflict, nil)
	var shown struct{ Status string }
	if s.ask(t, "GET", "/api/v1/tasks/"+made.ID, "", http.StatusOK, &shown); shown.Status != "CANCELED" {
		t.Errorf("the task is %s", shown.Status)
	}
}

// schedule declares one, whose next ticks the function cron makes, and triggers it.
func (s *stack) schedule(t *testing.T) {
	s.ask(t, "PUT", "/api/v1/schedules/often", `{"cron":"0 * * * * ?","job":"/topics/ticks"}`, http.StatusCreated, nil)
	if got := s.invoke(t, "CronFunction", `{"tick":"cron","time":"2026-01-01T00:00:00Z"}`); got != `""` {
		t.Fatalf("CronFunction: %s", got)
	}
	var list struct{ Jobs []struct{ ID string } }
	if s.ask(t, "GET", "/api/v1/jobs?type=ALL&topic=ticks", "", http.StatusOK, &list); len(list.Jobs) < 2 { // it looks ahead further than two minutes
		t.Errorf("the ticks are %+v", list.Jobs)
	}
	var made struct {
		ID string `json:"task_id"`
	}
	s.ask(t, "POST", "/api/v1/schedules/often/trigger", "", http.StatusAccepted, &made)
	s.ask(t, "GET", "/api/v1/jobs/"+made.ID, "", http.StatusOK, nil)
	s.ask(t, "DELETE", "/api/v1/schedules/often", "", http.StatusNoContent, nil)
}

// follow takes a snapshot, and follows from its EventId what is emitted next: by a request that may begin before.
func (s *stack) follow(t *testing.T) {
	type events struct {
		TYPE           string
		LastEventID    uint64
		EventSnapshots []struct {
			EventID uint64
			Key     string
			N       int
		}
	}
	var snapshot struct {
		EventID uint64
		Objects []struct{ Key string }
	}
	s.ask(t, "GET", "/jobscheduler/master/api/object/things/?return=ObjectOverview", "", http.StatusOK, &snapshot)
	came := make(chan string)
	go func() {
		defer close(came)
		r, text := s.send(t, "GET", fmt.Sprintf("/jobscheduler/master/api/event?return=Changed&timeout=20s&after=%d", snapshot.EventID), "")
		came <- fmt.Sprint(r.StatusCode, string(text))
	}()
	s.ask(t, "POST", "/jobscheduler/master/api/event", `[{"TYPE":"Changed","key":"/things/a","n":1}]`, http.StatusCreated, nil)
	if got := <-came; !strings.HasPrefix(got, "200") || !strings.Contains(got, `"NonEmpty"`) || !strings.Contains(got, "/things/a") {
		t.Errorf("the follower that waited got %s", got)
	}
	var read, rest events
	path := "/jobscheduler/master/api/event?return=Changed&timeout=1s&after=%d"
	if s.ask(t, "GET", fmt.Sprintf(path, snapshot.EventID), "", http.StatusOK, &read); len(read.EventSnapshots) != 1 || read.EventSnapshots[0].N != 1 {
		t.Fatalf("from the snapshot's EventId: %+v", read)
	}
	last := read.EventSnapshots[0].EventID
	if s.ask(t, "GET", fmt.Sprintf(path, last), "", http.StatusOK, &rest); rest.TYPE != "Empty" || rest.LastEventID < last {
		t.Errorf("after the last event, and a second: %+v", rest)
	}
	if s.ask(t, "GET", "/jobscheduler/master/api/object/things/?return=ObjectOverview", "", http.StatusOK, &snapshot); len(snapshot.Objects) != 1 || snapshot.EventID < last {
		t.Errorf("the snapshot is %+v, want what was emitted at %d", snapshot, last)
	}
}

// repeat sends a request twice with one key, as after a response that was lost.
func (s *stack) repeat(t *testing.T) {
	const path, body = "/jobscheduler/master/api/event", `[{"TYPE":"Once","key":"/once"}]`
	first, made := s.send(t, "POST", path, body, "Idempotency-Key", "k")
	second, again := s.send(t, "POST", path, body, "Idempotency-Key", "k")
	if first.StatusCode != http.StatusCreated || second.StatusCode != http.StatusCreated || string(made) != string(again) || second.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s, and again %d %s", first.StatusCode, made, second.StatusCode, again)
	}
	if other, text := s.send(t, "POST", path, `[{"TYPE":"Once","key":"/other"}]`, "Idempotency-Key", "k"); other.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another body with the key: %d %s", other.StatusCode, text)
	}
}

// page asks as a browser does for a page of another origin. The function of the gateway's route $default is invoked: the emulated gateway refuses
// each OPTIONS without CORS of its own, where API Gateway passes it on to $default and to routes of any method.
func (s *stack) page(t *testing.T) {
	const origin = "https://app.example"
	for from, want := range map[string]string{origin: origin, "https://evil.example": ""} {
		in := events.APIGatewayV2HTTPRequest{
			Version: "2.0", RouteKey: "$default", RawPath: "/api/v1/jobs",
			Headers: map[string]string{"host": s.host, "origin": from, "access-control-request-method": "POST", "access-control-request-headers": "authorization"},
		}
		in.RequestContext.HTTP.Method = http.MethodOptions
		payload, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out events.APIGatewayV2HTTPResponse
		if text := s.invoke(t, "DashboardFunction", string(payload)); json.Unmarshal([]byte(text), &out) != nil || out.StatusCode != http.StatusNoContent ||
			out.Headers["Access-Control-Allow-Origin"] != want {
			t.Errorf("a preflight of %s: %s", from, text)
		}
	}
	if r, text := s.send(t, "GET", "/api/v1/queues", "", "Origin", origin); r.StatusCode != http.StatusOK || r.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("what follows it: %d %v %s", r.StatusCode, r.Header, text)
	}
}
