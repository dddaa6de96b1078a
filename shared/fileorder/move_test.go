package fileorder

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A file that cannot be renamed to another file system is copied, with its time of change, and then removed.
func TestMoveToAnotherFileSystem(t *testing.T) {
	t.Parallel()
	from, dir := filepath.Join(t.TempDir(), "a"), t.TempDir()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.WriteFile(from, []byte("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(from, at, at); err != nil {
		t.Fatal(err)
	}
	away := func(from, to string) error {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EXDEV}
	}
	if err := move(away, from, filepath.Join(dir, "none", "a")); err == nil {
		t.Error("a move to a directory that is not there succeeded")
	}
	if err := move(away, from, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a"))
	if err != nil || string(text) != "text" {
		t.Errorf("the file is %q, %v", text, err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil || !info.ModTime().Equal(at) || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if _, err := os.Lstat(from); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || err != nil {
		t.Errorf("the directory has %v, %v", left, err)
	}
}
