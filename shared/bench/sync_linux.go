package bench

import (
	"os"
	"syscall"
)

// syncData makes a file's content durable.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
