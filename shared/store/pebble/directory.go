package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

const (
	// marker is the file that shows that a directory is Millrace's; its content names the format. It is written before
	// anything else, and read before Pebble touches the directory: Pebble would take over another program's database.
	marker = "MILLRACE"
	format = "millrace 1\n"

	unfinished = marker + ".new" // what a crash while marking leaves
)

// claim marks a new directory as Millrace's, and refuses one that belongs to something else.
func (s *Store) claim() error {
	names, err := s.fs.List(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !os.IsNotExist(err) {
		return s.openError(err)
	}
	if slices.Contains(names, marker) {
		return errors.Join(s.readMarker(), s.mayOpen(true))
	}
	for _, name := range names {
		if name != unfinished && name != "lost+found" {
			return fmt.Errorf("%w: %s holds %s and no file %s: it is not a store of Millrace; name an empty directory",
				store.ErrDamaged, s.dir, name, marker)
		}
	}
	if err := s.mayOpen(false); err != nil {
		return err
	}
	if err := s.mark(); err != nil {
		if noRoom(err) {
			return s.noStart(err)
		}
		return s.openError(err)
	}
	return nil
}

func (s *Store) readMarker() error {
	file, err := s.fs.Open(s.fs.PathJoin(s.dir, marker))
	if err != nil {
		return s.openError(err)
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<10))
	if err = errors.Join(err, file.Close()); err != nil {
		return s.openError(err)
	}
	if string(text) != format {
		return fmt.Errorf("%w: %s has the format %q, this program reads %q", store.ErrDamaged, s.dir, text, format)
	}
	return nil
}

// mark writes the marker durably: under another name first, so that it is complete or absent.
func (s *Store) mark() error {
	if err := s.mkdir(s.dir); err != nil {
		return err
	}
	path := s.fs.PathJoin(s.dir, unfinished)
	file, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(format))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(path, s.fs.PathJoin(s.dir, marker)); err != nil {
		return err
	}
	return s.sync(s.dir)
}

// mkdir creates a directory and its parents, each of them durably.
func (s *Store) mkdir(path string) error {
	if _, err := s.fs.Stat(path); err == nil {
		return nil
	}
	parent := s.fs.PathDir(path)
	if parent != path {
		if err := s.mkdir(parent); err != nil {
			return err
		}
	}
	if err := s.fs.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return s.sync(parent)
}

func (s *Store) sync(path string) error {
	dir, err := s.fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// openError tells apart why a directory cannot be opened: it is locked, it cannot be reached, or it is damaged.
func (s *Store) openError(err error) error {
	var path *fs.PathError
	switch locked := syscall.Errno(0); {
	case strings.Contains(err.Error(), "lock held by current process"), // of Pebble, for two stores in one process
		errors.As(err, &locked) && !errors.As(err, &path) && (locked == syscall.EAGAIN || locked == syscall.EACCES):
		return fmt.Errorf("%w: %s: end the other process, or name another directory", store.ErrLocked, s.dir)
	case noRoom(err):
		return fmt.Errorf("%w: %s: %w", store.ErrNoRoom, s.dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w: %s: %w", store.ErrUnavailable, s.dir, err)
	}
	return fmt.Errorf("%w: %s: %w", store.ErrDamaged, s.dir, err)
}
