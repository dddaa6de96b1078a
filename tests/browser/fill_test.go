package browser_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// filled are the ids of two jobs that fill adds: one that nobody runs, and one that fails.
type filled struct {
	waiting, failed string
	at              string // EventId of the moment when all was there
}

// somebody is an id of who writes to streams.
const somebody = "0b6b8a5e-4a4e-4b6c-9a57-0f0d3a1d8c11"

// fill puts something on every page of a server with the definitions of demo. The text is in every place where clients may put one.
func fill(s *server, text string) filled {
	s.t.Helper()
	order, name := "/api/v1/orders/"+url.PathEscape("/demo/parcel"), strings.ReplaceAll(text, "/", "|") // names of definitions have no slash
	given := map[string]any{"text": text, text: "as a name"}
	waiting := s.ask("POST", "/api/v1/jobs", map[string]any{"topic": "later", "properties": given, "fairness_key": text})
	failed := s.ask("POST", "/api/v1/jobs", map[string]any{"topic": "echo", "properties": given})
	s.ask("POST", order, map[string]any{"id": "stuck " + text, "variables": map[string]any{"text": text}})
	s.ask("POST", order, map[string]any{"id": "asked " + text, "variables": map[string]any{"country": text}})
	s.ask("POST", "/api/v1/tasks?source=machine&collection=facts", nil)
	s.ask("POST", "/api/v1/canvases/demo/handlers/WORKER/greet/events", map[string]any{"value": text, "modifier": text})
	fail(s, text)
	s.ask("POST", "/jobscheduler/master/api/event", []any{map[string]any{"TYPE": "Noted", "key": text, "text": text}})
	s.ask("POST", "/api/v1/streams/"+url.PathEscape(text)+"/events", map[string]any{
		"event": map[string]any{"name": text}, "payload": given,
		"system": map[string]any{"id": somebody, "name": text, "time": "2026-01-01T00:00:00Z", "timezone": "UTC"}, "trigger": map[string]any{"type": "manual", "name": text},
	}, "X-Producer-ID", somebody)
	s.ask("PUT", "/api/v1/schedules/"+url.PathEscape(name), map[string]any{"cron": "0 0 12 1 1 ? 2099", "job": "/topics/later"})
	s.ask("PUT", "/api/v1/queues/"+url.PathEscape(name), map[string]any{"topics": []string{"slow/*"}})
	s.ask("POST", "/api/v1/jobs", map[string]any{"topic": "slow/one"})
	eventually(s.t, "a job has failed and an order asks", func() bool {
		job := s.ask("GET", "/api/v1/jobs/"+failed["id"].(string), nil)
		asked := s.ask("GET", order+"/"+url.PathEscape("asked "+text), nil)
		return job["state"] == "GIVEN_UP" && asked["nodeId"] == "approve"
	})
	return filled{waiting["id"].(string), failed["id"].(string), s.stamp()}
}

// fail takes the part of an instance of that name, whose one job logs the text and fails with it.
func fail(s *server, text string) {
	s.t.Helper()
	id, _ := s.ask("POST", "/api/v1/instances", map[string]any{"name": text, "jobs": []string{"/topics/echo"}, "capacity": 1})["id"].(string)
	claims, _ := s.ask("POST", "/api/v1/instances/"+id+"/claims", map[string]any{"max": 1, "wait": "30s"})["claims"].([]any)
	if len(claims) != 1 {
		s.t.Fatalf("claims = %v", claims)
	}
	claim, _ := claims[0].(map[string]any)
	lease := "/api/v1/leases/" + claim["token"].(string)
	s.ask("POST", lease+"/heartbeat", map[string]any{"progress": map[string]any{"step": 1, "steps": 2, "message": text}, "logs": []any{map[string]any{"level": "info", "message": text}}})
	s.ask("POST", lease+"/complete", map[string]any{"result": "failed", "message": text})
}

// pages returns the address of every page, with what fill has added, and of forms. The text is the one that fill was given.
func (f filled) pages(text string) []string {
	order := "/orders/" + url.PathEscape("/demo/parcel") + "/"
	pages := strings.Fields("/ /jobs /jobs?type=GIVEN_UP /schedules?expr=@daily /schedules/nightly /failures /queues /handlers /handlers/demo/WORKER/greet /sources /schedules /orders " +
		"/streams /instances /journal /compare /audit /audit?return=Event /definitions /act?do=job.add /act?do=queue.suspend&name=main /many?do=jobs.retry&state=GIVEN_UP")
	for _, page := range []string{"/", "/jobs", "/orders", "/chains/" + url.PathEscape("/demo/parcel"), order + url.PathEscape("stuck "+text), "/journal", "/definitions", "/compare", "/task/" + f.failed,
		"/failures", "/queues", "/handlers", "/handlers/demo/WORKER/greet", "/sources", "/schedules", "/schedules/nightly", "/streams", "/streams/" + url.PathEscape(text), "/instances"} {
		pages = append(pages, page+"?at="+f.at)
	}
	pages = append(pages, "/cause/"+f.at)
	return append(pages, "/streams/"+url.PathEscape(text), "/schedules/"+url.PathEscape(strings.ReplaceAll(text, "/", "|")), "/task/"+f.waiting, "/task/"+f.failed, "/act?do=job.again&id="+f.failed, "/chains/"+url.PathEscape("/demo/parcel"),
		order+url.PathEscape("stuck "+text), order+url.PathEscape("asked "+text))
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}
