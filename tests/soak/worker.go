package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/process"
)

// The environment of a worker process.
const (
	workerURL    = "SOAK_WORKER_URL"    // of the server
	workerToken  = "SOAK_WORKER_TOKEN"  // to show there
	workerName   = "SOAK_WORKER_NAME"   // of the instance
	workerReport = "SOAK_WORKER_REPORT" // who is told of each attempt
)

// workerPrefix begins the names of workers.
const workerPrefix = "soak-"

// runWorker runs tasks until it is killed, or its standard input ends with the process that started it.
func runWorker() error {
	go leaveWithParent()
	c, err := client.New(client.Options{URL: os.Getenv(workerURL), Token: os.Getenv(workerToken), Patience: time.Minute})
	if err != nil {
		return err
	}
	jobs := map[string]client.Function{}
	for _, pattern := range []string{"/sources/**", "/canvases/**", "/topics/**"} {
		jobs[pattern] = runTask
	}
	return c.Worker(client.WorkerOptions{
		Jobs: jobs, Name: os.Getenv(workerName), Capacity: capacity,
		OnError: func(err error) { fmt.Fprintln(os.Stderr, os.Getenv(workerName), time.Now().Format(time.TimeOnly), err) },
	}).Run(context.Background())
}

// work is the payload of a task: what is to happen to it.
type work struct {
	Work string `json:"work"`
	Took int    `json:"ms"`
}

// runTask does what the payload says.
func runTask(ctx context.Context, t *client.Task) (any, error) {
	if err := report(ctx, t.ID, t.Attempt); err != nil {
		return nil, err
	}
	var w work
	_ = json.Unmarshal(t.Payload, &w) // synchronizations and ticks have none
	t.Log("info", "attempt "+fmt.Sprint(t.Attempt)+" does <"+w.Work+">")
	select {
	case <-time.After(time.Duration(w.Took) * time.Millisecond):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case w.Work == "fail" && t.Attempt == 1:
		return nil, errors.New("the first attempt fails")
	case w.Work == "panic" && t.Attempt == 1:
		panic("the first attempt panics")
	case w.Work == "reject":
		return nil, client.Reject(errors.New("never again"))
	}
	t.Report(client.Progress{Step: 1, Steps: 1})
	return map[string]string{"did": w.Work}, nil
}

// report tells that an attempt is being run.
func report(ctx context.Context, id string, number int) error {
	body := fmt.Sprintf("%s %d", id, number)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv(workerReport), strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := process.Client.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
