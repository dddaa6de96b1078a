//go:build unix

package worker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/worker"
)

// commands returns a runner of one command.
func commands(e *engine, timeout time.Duration, c worker.Command, command ...string) *worker.Runner {
	return worker.NewRunner(worker.Options{
		Engine: e, Definitions: declared(definition.Target{Command: command}, timeout), Targets: worker.Targets{Command: c},
	})
}

func shell(t *testing.T, script string) (queue.Result, []string) {
	t.Helper()
	e, l := newEngine(), lease("/job", 1)
	result := only(t, e, commands(e, 0, worker.Command{}, "/bin/sh", "-c", script), l)
	return result, e.messages(l.Token)
}

func TestCommandResults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		want   queue.Result
	}{
		"success": {"exit 0", queue.Result{Outcome: queue.OK}},
		"status":  {"exit 7", queue.Result{Outcome: queue.Failed, Code: 7, Message: "exit status 7"}},
		"signal":  {"kill -9 $$", queue.Result{Outcome: queue.Failed, Code: 137, Message: "signal: killed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, log := shell(t, test.script)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if len(log) > 0 {
				t.Errorf("the log is %q, want just what the program writes", log)
			}
		})
	}
}

func TestCommandThatDoesNotExist(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, code := range map[string]int{"no-such-program": 127, "/no/such/program": 127, plain: 126} {
		e := newEngine()
		got := only(t, e, commands(e, 0, worker.Command{}, command), lease("/job", 1))
		if got.Outcome != queue.Failed || got.Code != code {
			t.Errorf("%s: %s with %d, want failed with %d", command, got.Outcome, got.Code, code)
		}
		contains(t, "the message", got.Message, "the program "+command+" cannot be started: ")
		explained(t, e, lease("/job", 1).Token, got)
	}
}

func TestCommandStreams(t *testing.T) {
	t.Parallel()
	_, log := shell(t, `cat; echo; echo oops >&2; printf 'a\r\n\nlast'`)
	var info, wrong []string
	for _, line := range log {
		if message, ok := strings.CutPrefix(line, "info "); ok {
			info = append(info, message)
		} else {
			wrong = append(wrong, line)
		}
	}
	if len(info) != 4 {
		t.Fatalf("lines %q, want the task, a, an empty one and last", info)
	}
	contains(t, "standard input", info[0], `"job":"/job","attempt":1,"payload":{"n":1}`)
	if diff := cmp.Diff([]string{"a", "", "last"}, info[1:]); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"error oops"}, wrong); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
}

// TestCommandLogIsComplete: 50,000 lines of two streams are kept, each stream in its order.
func TestCommandLogIsComplete(t *testing.T) {
	t.Parallel()
	const lines = 25_000
	_, log := shell(t, fmt.Sprintf(`
		i=0; while [ $i -lt %[1]d ]; do echo "line $i of standard error"; i=$((i+1)); done >&2 &
		i=0; while [ $i -lt %[1]d ]; do echo "line $i of standard output"; i=$((i+1)); done
		wait`, lines))
	next := map[string]int{}
	for _, line := range log {
		level, message, _ := strings.Cut(line, " ")
		if want := fmt.Sprintf("line %d of standard %s", next[level], map[string]string{"info": "output", "error": "error"}[level]); message != want {
			t.Fatalf("%q, want %q", message, want)
		}
		next[level]++
	}
	if diff := cmp.Diff(map[string]int{"info": lines, "error": lines}, next); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestCommandLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	_, log := shell(t, `head -c 100000 /dev/zero | tr '\0' x; echo; printf 'bad \377 byte\n'`)
	if len(log) != 2 {
		t.Fatalf("%d lines, want 2", len(log))
	}
	if want := "info " + strings.Repeat("x", 32<<10) + "… (cut: the line is longer than 32 KiB)"; log[0] != want {
		t.Errorf("a line of %d bytes, want %d", len(log[0]), len(want))
	}
	if diff := cmp.Diff("info bad \uFFFD byte", log[1]); diff != "" {
		t.Errorf("the line after it (-want +got):\n%s", diff)
	}
}

// TestCommandStopEndsTheGroup: neither a child that runs on nor one that ignores SIGTERM outlives the attempt.
func TestCommandStopEndsTheGroup(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ script, signal string }{
		"hears SIGTERM": {`sleep 1000 & echo $!; echo $$; wait`, "terminated"},
		"is deaf":       {`trap '' TERM; sleep 1000 & echo $!; echo $$; while :; do wait; done`, "killed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, l := newEngine(), lease("/job", 1)
			var pids []int
			e.appendLog = func(token string, lines []tasklog.Line) error {
				for _, line := range lines {
					if pid, err := strconv.Atoi(line.Message); err == nil {
						pids = append(pids, pid)
					}
				}
				if len(pids) == 2 {
					e.stop(token)
				}
				return nil
			}
			got := only(t, e, commands(e, 0, worker.Command{Grace: 50 * time.Millisecond}, "/bin/sh", "-c", test.script), l)
			want := queue.Result{Outcome: queue.Cancel, Message: "stopped, as was asked for: signal: " + test.signal}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			gone(t, pids)
		})
	}
}

// gone checks that processes have ended, or are zombies.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for deadline := time.Now().Add(time.Minute); runs(pid); runtime.Gosched() { // a kill takes its time
			if time.Now().After(deadline) {
				t.Fatalf("process %d still runs", pid)
			}
		}
	}
}

func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return (err != nil || !strings.Contains(string(stat), ") Z ")) && syscall.Kill(pid, 0) == nil
}

func TestCommandTimeout(t *testing.T) {
	t.Parallel()
	e := newEngine()
	got := only(t, e, commands(e, 50*time.Millisecond, worker.Command{}, "sleep", "1000"), lease("/job", 1))
	want := queue.Result{Outcome: queue.Failed, Message: "it took longer than the 50ms allowed: signal: terminated"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	explained(t, e, lease("/job", 1).Token, got)
}

// TestCommandLeavesNothingBehind: processes that run in the group when the program ends are killed, and not waited for.
func TestCommandLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	got, log := shell(t, `sleep 1000 & echo $!`)
	if got.Outcome != queue.OK {
		t.Errorf("outcome %q, want %q", got.Outcome, queue.OK)
	}
	pid, err := strconv.Atoi(strings.TrimPrefix(log[0], "info "))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, []int{pid})
}

func TestCommandDoesNotInheritSecrets(t *testing.T) {
	t.Setenv("MILLRACE_ADMIN_TOKEN", "secret")
	t.Setenv("OTHER", "seen")
	_, log := shell(t, `echo "$MILLRACE_ADMIN_TOKEN-$OTHER"`)
	if diff := cmp.Diff([]string{"info -seen"}, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
