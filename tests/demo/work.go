package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace/tests/process"
)

// work is the second act: tasks whose commands do something on this machine, run by one worker, so that their order shows.
type work struct {
	server *process.Server
	dir    string // has the gate, a file that keeps the worker busy
	events string // the file that is worked on
	began  time.Time
	wrong  bool
}

// definitions are what the server of the second act is started with. GATE and FILE are put in their places.
const definitions = `
sources:
  checksum: {target: {command: [sha256sum, FILE]}, collections: [{name: log}]}
  compress: {target: {command: [sh, -c, "gzip -9c FILE | wc -c"]}, collections: [{name: log}]}
  count:    {target: {command: [sh, -c, "find . -name '*.go' | wc -l"]}, collections: [{name: tree}]}
  sizes:    {target: {command: [sh, -c, "du -sk shared functions cmd tests"]}, collections: [{name: tree}]}
  broken:   {target: {command: [ls, /nowhere]}, collections: [{name: disk}]}
handlers:
  - {canvas: demo, space: WORKER, name: gate, target: {command: [sh, -c, "while [ ! -e GATE ]; do sleep 0.02; done"]}}
  - {canvas: demo, space: WORKER, name: letters, target: {command: [sh, -c, "grep -o 'payload.*' | cut -c1-20"]}}
  - canvas: demo
    space: WORKER
    name: flaky
    target: {command: [sh, -c, "if grep -q 'attempt.:3'; then echo the third time it works; else echo not yet >&2; exit 1; fi"]}
    attempts: 3
    retry_delay: 200ms
`

// perform runs the second act.
func (w *work) perform(ctx context.Context, millrace string) (err error) {
	gate := filepath.Join(w.dir, "gate")
	text := strings.NewReplacer("GATE", gate, "FILE", w.events).Replace(definitions)
	if w.server, err = begin(ctx, millrace, filepath.Join(w.dir, "work"), text, 1); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.server.Stop()) }()
	return w.play(ctx, gate)
}

// begin starts a server with definitions, and so many workers, that keeps its data below data.
func begin(ctx context.Context, millrace, data, definitions string, workers int) (*process.Server, error) {
	config := data + ".yaml"
	if err := os.WriteFile(config, []byte(definitions), 0o600); err != nil {
		return nil, err
	}
	server := &process.Server{
		Binary: millrace, Store: "pebble:" + data, Token: "demo",
		Env: []string{"MILLRACE_CONFIG=" + config, fmt.Sprint("MILLRACE_WORKERS=", workers)},
	}
	return server, server.Start(ctx)
}

func (w *work) play(ctx context.Context, gate string) error {
	w.began = time.Now()
	fmt.Println()
	w.tell("a server with one worker, which is kept busy while work comes in")
	handlers := "/api/v1/canvases/demo/handlers/WORKER/"
	if err := w.post(ctx, handlers+"gate/events", `{"value":0}`, nil); err != nil {
		return err
	}
	if err := w.call(ctx, http.MethodPut, handlers+"letters/rules/pause", "", nil); err != nil {
		return err
	}
	w.tell("the handler letters is paused")
	tasks, err := w.enqueue(ctx)
	if err != nil {
		return err
	}
	for _, letter := range []string{`"a"`, `"b"`, `"c"`} {
		if err := w.post(ctx, handlers+"letters/events", `{"value":`+letter+`}`, nil); err != nil {
			return err
		}
	}
	if err := w.post(ctx, handlers+"flaky/events", `{"value":1}`, nil); err != nil {
		return err
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		return err
	}
	w.tell("the worker is free")
	if err := w.showTasks(ctx, tasks); err != nil {
		return err
	}
	if err := w.showHandlers(ctx, handlers); err != nil {
		return err
	}
	return w.showEvents(ctx, tasks[0])
}

func (w *work) tell(format string, args ...any) {
	fmt.Printf("%7.3f s  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// wish is a sync task that is asked for.
type wish struct {
	source, collection string
	priority           int
}

func (w *work) enqueue(ctx context.Context) (ids []string, err error) {
	for _, t := range []wish{
		{"count", "tree", 100}, {"compress", "log", 200}, {"checksum", "log", 300}, {"broken", "disk", 250}, {"sizes", "tree", 400},
	} {
		var made struct {
			TaskID string `json:"task_id"`
		}
		path := fmt.Sprintf("/api/v1/tasks?source=%s&collection=%s&priority=%d", t.source, t.collection, t.priority)
		if err := w.post(ctx, path, "", &made); err != nil {
			return nil, err
		}
		ids = append(ids, made.TaskID)
	}
	var why struct{ Reason string }
	err = w.call(ctx, http.MethodGet, "/api/v1/jobs/"+ids[0]+"/why", "", &why)
	w.tell("five tasks are enqueued; why does the first one not run? %s", why.Reason)
	return ids, err
}

// syncTask is a task as the API shows it.
type syncTask struct {
	ID, Source, Collection, Status string
	Priority                       int
	StartedAt                      string `json:"started_at"`
	FinishedAt                     string `json:"finished_at"`
}

// showTasks waits until the tasks have ended and prints them in the order in which they were started.
func (w *work) showTasks(ctx context.Context, ids []string) error {
	tasks := make([]syncTask, len(ids))
	err := w.until(ctx, func() (bool, error) {
		for i, id := range ids {
			if err := w.call(ctx, http.MethodGet, "/api/v1/tasks/"+id, "", &tasks[i]); err != nil {
				return false, err
			}
			if tasks[i].FinishedAt == "" {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(tasks, func(a, b syncTask) int { return strings.Compare(a.StartedAt, b.StartedAt) })
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nSTARTED\tTASK\tPRIORITY\tSTATUS\tFIRST LINE OF ITS LOG")
	for i, task := range tasks {
		line, err := w.firstLine(ctx, task.ID)
		if err != nil {
			return err
		}
		w.wrong = w.wrong || i > 0 && tasks[i-1].Priority < task.Priority
		fmt.Fprintf(t, "%s\t%s/%s\t%d\t%s\t%s\n", task.StartedAt[11:23], task.Source, task.Collection, task.Priority, task.Status, line)
	}
	return t.Flush()
}

func (w *work) firstLine(ctx context.Context, id string) (string, error) {
	var log struct {
		Logs []struct{ Level, Message string }
	}
	err := w.call(ctx, http.MethodGet, "/api/v1/tasks/"+id+"/logs", "", &log)
	if err != nil || len(log.Logs) == 0 {
		return "", err
	}
	return log.Logs[0].Level + ": " + log.Logs[0].Message[:min(len(log.Logs[0].Message), 60)], nil
}

// handlerEvent is an event of a handler as the API shows it.
type handlerEvent struct {
	Status, Name string
	Value        json.RawMessage
	Retries      int
	LastAt       string `json:"last_processed_at"`
}

// showHandlers waits for the retries, lifts the pause, and prints what became of the handlers' events.
func (w *work) showHandlers(ctx context.Context, handlers string) error {
	flaky, err := w.settled(ctx, handlers+"flaky/events")
	if err != nil {
		return err
	}
	fmt.Println()
	w.tell("flaky: %s after %d retries", flaky[0].Status, flaky[0].Retries)
	w.wrong = w.wrong || flaky[0].Status != "done"
	var held struct{ Events []handlerEvent }
	if err := w.call(ctx, http.MethodGet, handlers+"letters/events", "", &held); err != nil {
		return err
	}
	w.tell("letters: %d events still %q; the pause is lifted", len(held.Events), held.Events[0].Status)
	if err := w.call(ctx, http.MethodDelete, handlers+"letters/rules/pause", "", nil); err != nil {
		return err
	}
	letters, err := w.settled(ctx, handlers+"letters/events")
	if err != nil {
		return err
	}
	slices.SortFunc(letters, func(a, b handlerEvent) int { return strings.Compare(a.LastAt, b.LastAt) })
	order := ""
	for _, e := range letters {
		order += strings.Trim(string(e.Value), `"`)
	}
	w.wrong = w.wrong || order != "abc"
	w.tell("letters ran in the order %s", order)
	return nil
}

// settled waits until no event of a handler is under way.
func (w *work) settled(ctx context.Context, path string) ([]handlerEvent, error) {
	var answer struct{ Events []handlerEvent }
	err := w.until(ctx, func() (bool, error) {
		if err := w.call(ctx, http.MethodGet, path, "", &answer); err != nil {
			return false, err
		}
		for _, e := range answer.Events {
			if e.Status != "done" && e.Status != "error" {
				return false, nil
			}
		}
		return true, nil
	})
	return answer.Events, err
}

// showEvents prints what the journal says of one task.
func (w *work) showEvents(ctx context.Context, id string) error {
	var answer struct {
		EventSnapshots []struct {
			EventID int64 `json:"eventId"`
			TYPE    string
			Key     json.RawMessage
		}
	}
	path := "/jobscheduler/master/api/event?return=TaskEvent&after=0"
	if err := w.call(ctx, http.MethodGet, path, "", &answer); err != nil {
		return err
	}
	fmt.Printf("\nThe journal on %s:\n", id)
	for _, e := range answer.EventSnapshots {
		if strings.Contains(string(e.Key), id) {
			fmt.Printf("  %d  %s\n", e.EventID, e.TYPE)
		}
	}
	if w.wrong {
		return errWrong
	}
	return nil
}

// until polls until something is so.
func (w *work) until(ctx context.Context, done func() (bool, error)) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *work) post(ctx context.Context, path, body string, into any) error {
	return w.call(ctx, http.MethodPost, path, body, into)
}

// call sends a request to the server, and reads the response into the value, if that is not nil.
func (w *work) call(ctx context.Context, method, path, body string, into any) error {
	u, err := url.Parse(w.server.URL() + path)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer demo")
	r.Header.Set("Content-Type", "application/json")
	response, err := process.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
