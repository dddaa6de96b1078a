package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/queue"
)

// Command runs programs, without a shell, each in a process group of its own. It is a [Target]. Use it only in servers whose
// definitions come from their own configuration.
//
// The program gets the attempt as JSON on its standard input. Lines of its standard output become log lines of level info,
// those of its standard error of level error, as they appear. Its exit status is the return code (128 and the signal's
// number if a signal ended it); any but 0 is a failure. For an order's step MILLRACE_VARIABLES names a file that holds the order's
// variables as a JSON object; those that it holds at the end change the order's. When the attempt must end, the whole group gets SIGTERM, and
// SIGKILL after the grace. Processes that the program leaves running in its group are killed when it ends.
type Command struct {
	Grace     time.Duration // from SIGTERM to SIGKILL; default 5 s, which is within the Runner's
	LastGrace time.Duration // the same when the worker shuts down; default: Grace
	Dir       string        // the working directory; default: the server's
	Env       []string      // as NAME=VALUE; nil: the server's, without the variables MILLRACE_*, which hold its secrets
}

// Run runs the program that the attempt's target names.
func (c Command) Run(ctx context.Context, a *Attempt, log *Log) queue.Result {
	body, err := a.body()
	if err != nil {
		return failed("the task cannot be written as JSON: " + err.Error())
	}
	cmd := exec.Command(a.Target.Command[0], a.Target.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, c.environment(), bytes.NewReader(body)
	variables, err := writeVariables(a)
	if err != nil {
		return failed("no file for the order's variables: " + err.Error())
	}
	defer variables.remove()
	cmd.Env = append(cmd.Env, variables.env()...)
	cmd.WaitDelay = leftover // for an input that is not read
	group(cmd)
	output, err := connect(cmd, log)
	if err != nil {
		return failed("no pipe for the program's output: " + err.Error())
	}
	// On Linux the program dies with the thread that started it: the thread lives as long as this function.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		output.abandon()
		result := notStarted(a.Target.Command[0], err)
		log.explain(&result)
		return result
	}
	output.started()
	exited := make(chan struct{})
	var watched sync.WaitGroup
	watched.Go(func() { c.watch(ctx, cmd, exited) })
	err = cmd.Wait()
	close(exited)
	watched.Wait()
	killGroup(cmd)
	output.finish()
	result := exitResult(cmd, err)
	variables.read(&result)
	return result
}

// leftover is how long the pipes are read after the program's end, if another process keeps them open.
const leftover = time.Second

// watch ends the group when ctx ends first.
func (c Command) watch(ctx context.Context, cmd *exec.Cmd, exited <-chan struct{}) {
	select {
	case <-exited:
		return
	case <-ctx.Done():
	}
	grace := cmp.Or(max(c.Grace, 0), 5*time.Second)
	if errors.Is(context.Cause(ctx), ErrShutdown) {
		grace = cmp.Or(max(c.LastGrace, 0), grace)
	}
	terminateGroup(cmd)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		killGroup(cmd)
	}
}

// environment returns the program's environment.
func (c Command) environment() []string {
	if c.Env != nil {
		return c.Env
	}
	env := []string{}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MILLRACE_") {
			env = append(env, variable)
		}
	}
	return env
}

// notStarted returns the result of a program that cannot be started, with the return code that a shell gives.
func notStarted(name string, err error) queue.Result {
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	return queue.Result{Outcome: queue.Failed, Code: code, Message: fmt.Sprintf("the program %s cannot be started: %v", name, err)}
}

// exitResult returns the result of a program that has ended.
func exitResult(cmd *exec.Cmd, err error) queue.Result {
	state := cmd.ProcessState
	if state == nil {
		return failed("waiting for the program: " + err.Error())
	}
	if state.Success() {
		return queue.Result{Outcome: queue.OK}
	}
	return queue.Result{Outcome: queue.Failed, Code: exitCode(state), Message: state.String()}
}
