//go:build unix && !linux

package worker

import (
	"os/exec"
	"syscall"
)

// group puts a command into a process group of its own.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
