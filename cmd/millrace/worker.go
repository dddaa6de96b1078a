package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace/client"
)

// workerCommand runs a command for each task of some jobs, as an instance on any machine.
type workerCommand struct {
	remote
	Jobs     []string      `required:"" help:"Paths of jobs, or patterns: /a/* those directly below /a, /a/** all below." placeholder:"PATTERN"`
	Capacity int           `help:"How many tasks run at once." default:"1"`
	Name     string        `help:"What the instance is called; default: the host's name and the process's number." placeholder:"NAME"`
	Drain    time.Duration `help:"How long tasks may go on after a signal to end." default:"30s" placeholder:"TIME"`
	Command  []string      `arg:"" help:"What to run for each task, after --."`
}

func (workerCommand) Help() string {
	return `Example:

    millrace worker --jobs '/topics/mail/*' --capacity 4 -- ./send-mail --quiet

The command gets the task as JSON on standard input: id, job, attempt, payload. What it prints is the task's log, standard
error as errors. Any exit status but 0 is a failed attempt. When the task is to be stopped, the command gets SIGTERM, and 5 s
later SIGKILL.

On SIGTERM the worker takes no more tasks, waits for those that run, and leaves.`
}

// Run works until ctx ends or the server drains the instance.
func (w workerCommand) Run(ctx context.Context, c console) error {
	if w.Capacity < 1 {
		return misused("--capacity is %d, want at least 1", w.Capacity)
	}
	if _, err := exec.LookPath(w.Command[0]); err != nil {
		return misused("the program for the tasks cannot be run: %w", err) // which would cost each of them its attempts
	}
	return w.on(c, func(server *client.Client) error {
		jobs := map[string]client.Function{}
		for _, pattern := range w.Jobs {
			jobs[pattern] = w.run
		}
		return server.Worker(client.WorkerOptions{
			Jobs: jobs, Name: w.Name, Capacity: w.Capacity, Drain: w.Drain, OnError: func(err error) { c.note("%v", err) },
		}).Run(ctx)
	})
}

// killAfter is how long a command has to stop after SIGTERM.
const killAfter = 5 * time.Second

// run runs the command for one task.
func (w workerCommand) run(ctx context.Context, t *client.Task) (any, error) {
	input, err := json.Marshal(map[string]any{"id": t.ID, "job": t.Job, "attempt": t.Attempt, "payload": t.Payload})
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, w.Command[0], w.Command[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killAfter
	command.Stdin = bytes.NewReader(input)
	info, errs := logTo(t, "info"), logTo(t, "error")
	command.Stdout, command.Stderr = info, errs
	err = command.Run()
	info.Close()
	errs.Close()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return nil, err
}

// lineLog is a writer whose lines become those of a task's log.
type lineLog struct {
	*io.PipeWriter
	done sync.WaitGroup
}

func logTo(t *client.Task, level string) *lineLog {
	r, w := io.Pipe()
	l := &lineLog{PipeWriter: w}
	l.done.Go(func() {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
				t.Log(level, line)
			}
			if err != nil {
				return // the pipe was closed
			}
		}
	})
	return l
}

// Close waits until the last line is taken.
func (l *lineLog) Close() {
	_ = l.PipeWriter.Close() // never fails
	l.done.Wait()
}
