package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

func TestGrouped(t *testing.T) {
	t.Parallel()
	job := func(id, topic, message string) client.Job {
		return client.Job{ID: id, Topic: topic, Message: message}
	}
	got := grouped([]client.Job{job("5", "a", "rare"), job("4", "b", "code 7"), job("3", "a", "code 1"), job("2", "a", "code 22"), job("1", "a", "code 3")})
	type group struct {
		Topic, Shape, Last string
		Count              int
	}
	var shown []group
	for _, g := range got {
		shown = append(shown, group{g.Topic, g.Shape, g.Last, g.Count})
	}
	want := []group{{"a", "code N", "3", 3}, {"a", "rare", "5", 1}, {"b", "code N", "4", 1}}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].Group == got[2].Group {
		t.Error("two topics share a group")
	}
}

// A job that was replayed and could not be removed from the history is not done twice when it is replayed again.
func TestReplayIsCutShort(t *testing.T) {
	t.Parallel()
	var keys []string
	removable := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			keys = append(keys, r.URL.Path+" "+r.Header.Get("Idempotency-Key"))
			_, _ = io.WriteString(w, `{"id":"2"}`)
		case !removable:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	jobs := []client.Job{{ID: "1"}}
	if _, err := replay(t.Context(), c, jobs, 0); err == nil {
		t.Error("replay = nil, want why the job is still there")
	}
	removable = true
	if done, err := replay(t.Context(), c, jobs, 0); done != 1 || err != nil {
		t.Errorf("replay = %d, %v", done, err)
	}
	if diff := cmp.Diff([]string{"/api/v1/jobs/1/retry replay-1", "/api/v1/jobs/1/retry replay-1"}, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
