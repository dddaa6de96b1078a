//go:build !unix

package worker

import (
	"os"
	"os/exec"
)

// group does nothing: there are no process groups here, only the program itself can be ended.
func group(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { killGroup(cmd) }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // fails if it has ended

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
