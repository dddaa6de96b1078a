package client_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

func TestNewJobAsTheServerTakesIt(t *testing.T) {
	t.Parallel()
	retries, delay := 0, time.Duration(0)
	for want, n := range map[string]client.NewJob{
		`{"topic":"a"}`: {Topic: "a"},
		`{"topic":"a","properties":{"x":1},"priority":2,"run_at":"2026-01-01T00:00:00.000000Z","retries":0,"retry_delay":"0s",` +
			`"unique":{"key":"u","window":"1m"},"fairness_key":"f","concurrency":{"key":"k","limit":3},"prefer_instance":"i"}`: {
			Topic: "a", Properties: json.RawMessage(`{"x":1}`), Priority: 2, RunAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			Retries: &retries, RetryDelay: &delay, Unique: "u", UniqueWindow: time.Minute, FairnessKey: "f",
			Concurrency: &client.JobConcurrency{Key: "k", Limit: 3}, PreferInstance: "i",
		},
		`{"topic":"a","unique":"u"}`: {Topic: "a", Unique: "u"},
	} {
		got, err := json.Marshal(n)
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	const next = `</api/v1/jobs?cursor=c>; rel="next"`
	c, s := speak(t,
		answer{status: 201, body: `{"id":"1","state":"QUEUED"}`}, answer{status: 200, body: `{"id":"1"}`},
		answer{status: 200, body: `{"jobs":[{"id":"1"},{"id":"2"}]}`, link: next}, answer{status: 200, body: `{"jobs":[{"id":"3"}]}`},
		answer{status: 200, body: `{"jobs":[]}`, link: next}, answer{status: 200, body: `{"jobs":[{"id":"4"}]}`},
		answer{status: 404},
	)
	if job, existing, err := c.AddJob(t.Context(), client.NewJob{Topic: "a"}); job.ID != "1" || existing || err != nil {
		t.Errorf("AddJob = %v, %v, %v", job, existing, err)
	}
	if _, existing, err := c.AddJob(t.Context(), client.NewJob{Topic: "a"}); !existing || err != nil {
		t.Errorf("AddJob = %v, %v, want the one that is there", existing, err)
	}
	if s.keys[0] == "" || s.keys[0] == s.keys[1] {
		t.Errorf("keys = %q, want one for each request", s.keys)
	}
	var ids []string
	for _, q := range []client.JobQuery{{Type: "HISTORY"}, {Templates: []map[string]any{{"n": 1}}}} {
		for job, err := range c.Jobs(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, job.ID)
		}
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.RemoveJob(t.Context(), "1/2"); client.StatusOf(err) != 404 {
		t.Errorf("RemoveJob = %v, want a 404", err)
	}
	want := []string{
		`POST /api/v1/jobs {"topic":"a"}`, `POST /api/v1/jobs {"topic":"a"}`, "GET /api/v1/jobs?type=HISTORY", "GET /api/v1/jobs?cursor=c&type=HISTORY",
		`POST /api/v1/jobs/search {"templates":[{"n":1}]}`, `POST /api/v1/jobs/search?cursor=c {"templates":[{"n":1}]}`, "DELETE /api/v1/jobs/1%2F2",
	}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAddJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := speak(t,
			answer{status: 503}, answer{status: 201, body: `[{"id":"1"},{"id":"2","existing":true}]`}, answer{status: 201, body: `[]`}, answer{status: 400},
			answer{status: 0}, answer{status: 201, body: `[{"task_id":"1"},{"task_id":"2","existing":true}]`}, answer{status: 400},
		)
		added, err := c.AddJobs(t.Context(), []client.NewJob{{Topic: "a"}, {Topic: "b", Unique: "<u>"}})
		want := []client.AddedJob{{Job: client.Job{ID: "1"}}, {Job: client.Job{ID: "2"}, Existing: true}}
		if diff := cmp.Diff(want, added); diff != "" || err != nil {
			t.Errorf("AddJobs: %v (-want +got):\n%s", err, diff)
		}
		if _, err := c.AddJobs(t.Context(), []client.NewJob{{Topic: "a"}}); err == nil {
			t.Error("no error where a result is missing")
		}
		if _, err := c.AddJobs(t.Context(), []client.NewJob{{}}); client.StatusOf(err) != 400 {
			t.Errorf("AddJobs = %v, want a 400", err)
		}
		tasks, err := c.EnqueueSyncs(t.Context(), []client.NewSync{{Source: "s", Collection: "c"}, {Source: "s", Collection: "d", Priority: 5}})
		if diff := cmp.Diff([]client.EnqueuedSync{{ID: "1"}, {ID: "2", Existing: true}}, tasks); diff != "" || err != nil {
			t.Errorf("EnqueueSyncs: %v (-want +got):\n%s", err, diff)
		}
		if _, err := c.EnqueueSyncs(t.Context(), nil); client.StatusOf(err) != 400 {
			t.Errorf("EnqueueSyncs = %v, want a 400", err)
		}
		if s.keys[0] == "" || s.keys[0] != s.keys[1] || s.keys[1] == s.keys[2] || s.keys[4] == "" || s.keys[4] != s.keys[5] {
			t.Errorf("keys = %q, want one for each request and its repetition", s.keys)
		}
		if s.asked[1] != `POST /api/v1/jobs:batch [{"topic":"a"},{"topic":"b","unique":"<u>"}]` ||
			s.asked[5] != `POST /api/v1/tasks:batch [{"source":"s","collection":"c"},{"source":"s","collection":"d","priority":5}]` {
			t.Errorf("asked %q", s.asked)
		}
	})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := speak(t,
			answer{status: 503}, answer{status: 201, body: `{"id":"2"}`}, answer{status: 201, body: `{"id":"3"}`},
			answer{status: 409},
		)
		if job, err := c.Retry(t.Context(), "1/2"); job.ID != "2" || err != nil {
			t.Errorf("Retry = %v, %v", job, err)
		}
		if s.keys[0] == "" || s.keys[0] != s.keys[1] {
			t.Errorf("keys = %q, want one for the request and its repetition", s.keys)
		}
		if job, err := c.RetryOnce(t.Context(), "k", "1"); job.ID != "3" || err != nil || s.keys[2] != "k" {
			t.Errorf("RetryOnce = %v, %v under %q", job, err, s.keys[2])
		}
		if _, err := c.RetryOnce(t.Context(), "k", "1"); client.StatusOf(err) != 409 {
			t.Errorf("RetryOnce = %v, want a 409", err)
		}
		want := []string{"POST /api/v1/jobs/1%2F2/retry", "POST /api/v1/jobs/1%2F2/retry", "POST /api/v1/jobs/1/retry", "POST /api/v1/jobs/1/retry"}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
