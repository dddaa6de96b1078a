//go:build !linux

package process

import "os/exec"

// endWithParent does nothing: the system cannot end a process with its parent.
func endWithParent(*exec.Cmd) {}
