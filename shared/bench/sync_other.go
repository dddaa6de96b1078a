//go:build !linux

package bench

import "os"

// syncData makes a file's content durable.
func syncData(file *os.File) error { return file.Sync() }
