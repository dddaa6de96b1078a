package process

import (
	"os/exec"
	"syscall"
)

// endWithParent has the system kill the server when the process that started it ends, however that comes about.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
