package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
)

type logLine struct{ Time, Message, Level string }

// logged returns a running task with that many lines, one each second from 2000-01-01, and its lease.
func (w *works) logged(t *testing.T, n int) (id string, lease queue.Lease) {
	t.Helper()
	id = w.sync(t, "orders")
	lease = w.claim(t)[0]
	var lines []tasklog.Line
	for i := range n {
		level := "info"
		if i%2 == 1 {
			level = "error"
		}
		lines = append(lines, tasklog.Line{Time: epoch.Add(time.Duration(i) * time.Second), Level: level, Message: fmt.Sprint("line ", i, " <&>")})
	}
	w.say(t, lease, lines...)
	return id, lease
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *works) say(t *testing.T, l queue.Lease, lines ...tasklog.Line) {
	t.Helper()
	if err := w.AppendLog(t.Context(), l.Token, lines); err != nil {
		t.Fatal(err)
	}
}

func TestTaskLogs(t *testing.T) {
	t.Parallel()
	w := working(t)
	id, _ := w.logged(t, 4)
	read := func(query string) reply { return w.as(t, access.Viewer, "GET", "/api/v1/tasks/"+id+"/logs?"+query, "") }
	want := `{"logs":[{"time":"2000-01-01T00:00:00.000000Z","message":"line 0 <&>","level":"info"},` +
		`{"time":"2000-01-01T00:00:01.000000Z","message":"line 1 <&>","level":"error"}]}`
	if got := read("limit=2"); got.body != want || linked(got) == "" {
		t.Errorf("logs = %s", got.body)
	} else if rest := w.as(t, access.Viewer, "GET", linked(got), ""); linked(rest) != "" || messages(t, rest) != "2 3" {
		t.Errorf("the rest = %s, Link %q", rest.body, rest.Header.Get("Link"))
	}
	const at = "2000-01-01T00:00:0"
	for query, want := range map[string]string{
		"":                                    "0 1 2 3",
		"follow=false":                        "0 1 2 3",
		"follow=true":                         "0 1 2 3", // nobody has asked for a stream
		"start=" + at + "1Z":                  "1 2 3",
		"end=" + at + "1Z":                    "0 1",
		"start=" + at + "1Z&end=" + at + "2Z": "1 2",
		"start=" + at + "1.5Z":                "2 3",
		"start=" + at + "9Z":                  "",
		"limit=1000":                          "0 1 2 3",
	} {
		if got := messages(t, read(query)); got != want {
			t.Errorf("%s: lines %s, want %s", query, got, want)
		}
	}
	for query, location := range map[string]string{
		"start=x": "query.start", "end=2000": "query.end", "follow=yes": "query.follow", "limit=0": "query.limit", "limit=1001": "query.limit",
		"cursor=x": "query.cursor",
	} {
		wantProblem(t, read(query), 400, api.CodeInvalid, location)
	}
	for _, whole := range []string{"limit=4", "limit=2&end=" + at + "1Z", "limit=1&start=" + at + "3Z"} { // as many as there are
		if got := read(whole); linked(got) != "" {
			t.Errorf("%s: the list goes on at %s, where there is nothing", whole, linked(got))
		}
	}
	other := w.sync(t, "customers")
	if got := w.as(t, access.Viewer, "GET", "/tasks/"+other+"/logs", ""); got.body != `{"logs":[]}` {
		t.Errorf("no log = %s", got.body)
	}
}

// messages joins the numbers of a response's lines.
func messages(t *testing.T, r reply) string {
	t.Helper()
	var all []string
	for _, line := range into[map[string][]logLine](t, r, 200)["logs"] {
		all = append(all, strings.Fields(line.Message)[1])
	}
	return strings.Join(all, " ")
}

// A log is whole where the host can carry it, and goes on by Link where it cannot.
func TestLogsOfOtherTasks(t *testing.T) {
	t.Parallel()
	w := working(t)
	event := w.emit(t, "mail", `{"value":1}`).ID
	w.say(t, w.claim(t)[0], tasklog.Line{Time: epoch, Level: "info", Message: "line 0 <&>"})
	if got := messages(t, w.as(t, access.Viewer, "GET", "/api/v1/tasks/"+event+"/logs", "")); got != "0" {
		t.Errorf("lines %s of a handler event, want 0", got)
	}
}

func TestLongLogs(t *testing.T) {
	t.Parallel()
	const n = 12_345
	w := working(t)
	id, _ := w.logged(t, n)
	got := w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs", "")
	if lines := into[map[string][]logLine](t, got, 200)["logs"]; len(lines) != n || linked(got) != "" {
		t.Errorf("%d lines, want %d", len(lines), n)
	}
	small := working(t, func(o *api.Options) { o.CanStream, o.MaxAnswer = false, 100_000 })
	id, _ = small.logged(t, n)
	count, pages := 0, 0
	for next := "/tasks/" + id + "/logs"; next != ""; pages++ {
		got := small.as(t, access.Viewer, "GET", next, "")
		if len(got.body) > 300_000 {
			t.Errorf("an answer of %d bytes", len(got.body))
		}
		for _, line := range into[map[string][]logLine](t, got, 200)["logs"] {
			if want := fmt.Sprint("line ", count, " <&>"); line.Message != want {
				t.Fatalf("line %q, want %q", line.Message, want)
			}
			count++
		}
		next = linked(got)
	}
	if count != n || pages < 3 {
		t.Errorf("%d lines in %d answers, want %d", count, pages, n)
	}
}

const eventStream = "text/event-stream"

// A client that follows a log sees each line when it comes, and the end.
func TestFollowLogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		id, lease := w.logged(t, 2)
		followed := make(chan reply)
		began := time.Now()
		go func() {
			followed <- w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs?follow=true", "", "Accept", eventStream)
		}()
		for i := range 3 {
			time.Sleep(20 * time.Second) // beyond the heartbeat, within the lease
			w.say(t, lease, tasklog.Line{Message: fmt.Sprint("later ", i)})
		}
		w.finish(t, lease, queue.OK)
		got := <-followed
		if took := time.Since(began); took > 62*time.Second {
			t.Errorf("the end was seen after %v", took)
		}
		if kind := got.Header.Get("Content-Type"); kind != eventStream || got.StatusCode != 200 {
			t.Errorf("answer = %d %s", got.StatusCode, kind)
		}
		var said []string
		for line := range strings.Lines(got.body) {
			if data, is := strings.CutPrefix(line, `data: {"time"`); is {
				_, message, _ := strings.Cut(data, `"message":"`)
				message, _, _ = strings.Cut(message, `"`)
				said = append(said, message)
			}
		}
		if diff := cmp.Diff([]string{"line 0 <&>", "line 1 <&>", "later 0", "later 1", "later 2"}, said); diff != "" {
			t.Error(diff)
		}
		if !strings.HasSuffix(got.body, "event: end\ndata: {}\n\n") || !strings.Contains(got.body, "\n:\n\n") {
			t.Errorf("no heartbeat, or no end: %s", got.body)
		}
		at := strings.LastIndex(got.body[:strings.Index(got.body, "later 1")], "id: ")
		last, _, _ := strings.Cut(got.body[at+len("id: "):], "\n")
		resumed := w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs?follow=true", "", "Accept", eventStream, "Last-Event-ID", last)
		if strings.Contains(resumed.body, "later 0") || !strings.Contains(resumed.body, "later 1") {
			t.Errorf("after %s: %s", last, resumed.body)
		}
		wantProblem(t, w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs?follow=true", "", "Accept", eventStream, "Last-Event-ID", "x"), 400, api.CodeInvalid, "header.Last-Event-ID")
		if head := w.as(t, access.Viewer, http.MethodHead, "/tasks/"+id+"/logs?follow=true", "", "Accept", eventStream); head.StatusCode != 200 {
			t.Errorf("HEAD = %d", head.StatusCode)
		}
	})
}

// A host that cannot stream responds when there are lines; the client comes back.
func TestFollowLogsInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t, func(o *api.Options) { o.CanStream, o.MaxWait = false, 10*time.Second })
		id, lease := w.logged(t, 1)
		after := ""
		follow := func() reply {
			got := w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs?follow=true", "", "Accept", eventStream, "Last-Event-ID", after)
			if at := strings.LastIndex(got.body, "id: "); at >= 0 {
				after, _, _ = strings.Cut(got.body[at+len("id: "):], "\n")
			}
			return got
		}
		if got := follow(); !strings.Contains(got.body, "line 0") || strings.Contains(got.body, "event: end") {
			t.Errorf("first = %s", got.body)
		}
		if got := follow(); got.body != ":\n\n" {
			t.Errorf("nothing new = %q", got.body)
		}
		w.finish(t, lease, queue.OK)
		if got := follow(); got.body != "event: end\ndata: {}\n\n" {
			t.Errorf("the end = %q", got.body)
		}
	})
}

// A stream of a log ends when the server is to stop, and its client goes on from the last line elsewhere.
func TestFollowedLogsEndWithTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		w := working(t, func(o *api.Options) { o.Stopping = stopping })
		id, _ := w.logged(t, 2)
		followed := make(chan reply)
		go func() {
			followed <- w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs?follow=true", "", "Accept", eventStream)
		}()
		synctest.Wait()
		began := time.Now()
		stop()
		got := <-followed
		if took := time.Since(began); took != 0 || got.StatusCode != 200 || !strings.Contains(got.body, "line 1") || strings.Contains(got.body, "event: end") {
			t.Errorf("after %v: %d %s, want the lines, and no end of the log", took, got.StatusCode, got.body)
		}
	})
}
