package worker

import (
	"os/exec"
	"syscall"
)

// group puts a command into a process group of its own, and ties its life to this process.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
