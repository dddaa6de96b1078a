//go:build unix

package worker

import (
	"os"
	"os/exec"
	"syscall"
)

// terminateGroup asks every process of a command's group to end.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // fails if none is left

// killGroup ends every process of a command's group.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // fails if none is left

// exitCode returns the exit status, or 128 plus the number of the signal that ended the program.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
