package fileorder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/millrace/millrace/shared/definition"
)

// away moves or removes a file if it is the marked one still; otherwise that was done before. It calls changed with the directories that
// it has changed.
func away(done definition.FileDone, path, mark string, changed func(directory string)) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && markOf(info) != mark {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case done.MoveTo == "":
		err = os.Remove(path)
	case !strings.HasPrefix(done.MoveTo, "/"):
		err = fmt.Errorf("a file cannot be moved to %s", done.MoveTo)
	default:
		err = move(os.Rename, path, filepath.Join(done.MoveTo, filepath.Base(path)))
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(path); errors.Is(gone, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if changed(filepath.Dir(path)); done.MoveTo != "" {
		changed(done.MoveTo)
	}
	return nil
}

// move renames a file, or copies it to another file system and removes it then.
func move(rename func(from, to string) error, from, to string) error {
	err := rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	part := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+".part")
	if err := copyFile(from, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, to); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := flush(filepath.Dir(to)); err != nil {
		return err
	}
	return os.Remove(from)
}

// copyFile copies a file with its mode and its time of change, to the disk.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// flush writes a directory to the disk, so that what was moved or removed stays so after a loss of power. File systems that cannot
// flush a directory need not.
func flush(directory string) error {
	d, err := os.Open(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has been removed
	}
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
