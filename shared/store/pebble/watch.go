package pebble

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// watchedFS keeps errors of the log's files from Pebble, which would end the process. The goroutine that meets one, the
// committer or Pebble's writer of the log, reports it and blocks for ever; the calls that wait for it return an error.
type watchedFS struct {
	vfs.FS
	fail  func(reason string)
	armed atomic.Bool // set once the store is open: until then Open returns the errors
	zeros []byte      // what a log is extended by

	shortage *shortage // of disk space for tables
}

func (w *watchedFS) check(what, name string, err error) error {
	if err == nil || !w.armed.Load() {
		return err
	}
	w.fail(fmt.Sprintf("%s %s: %v", what, name, err))
	select {}
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// Create creates a file, and watches it if it is a log or a table.
func (w *watchedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if isTable(name) {
		w.shortage.wait()
		file, err := w.FS.Create(name, category)
		if err != nil {
			return nil, w.shortage.note(err)
		}
		return &table{file, w.shortage}, nil
	}
	file, err := w.FS.Create(name, category)
	return w.watch(name, file, err)
}

// ReuseForWrite makes a log of an old one.
func (w *watchedFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := w.FS.ReuseForWrite(from, to, category)
	return w.watch(to, file, err)
}

func (w *watchedFS) watch(name string, file vfs.File, err error) (vfs.File, error) {
	if !isLog(name) {
		return file, err
	}
	if err := w.check("create", name, err); err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err := w.check("look at", name, err); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &watchedLog{watchedFile: watchedFile{File: file, fs: w, name: name}, room: info.Size()}, nil
}

// OpenDir opens a directory, whose sync makes new logs durable.
func (w *watchedFS) OpenDir(name string) (vfs.File, error) {
	file, err := w.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &watchedFile{File: file, fs: w, name: name}, nil
}

// Unwrap returns the file system that is watched.
func (w *watchedFS) Unwrap() vfs.FS { return w.FS }

type watchedFile struct {
	vfs.File
	fs   *watchedFS
	name string
}

// Sync makes a file or a directory durable.
func (f *watchedFile) Sync() error { return f.fs.check("sync", f.name, f.File.Sync()) }

// SyncData makes what a log holds durable.
func (f *watchedFile) SyncData() error { return f.fs.check("sync", f.name, f.File.SyncData()) }

// SyncTo makes the beginning of a log durable.
func (f *watchedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.name, err)
}

// Stat returns the size of a log.
func (f *watchedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return info, f.fs.check("look at", f.name, err)
}

// Close ends a log; no error of a write may be lost with it.
func (f *watchedFile) Close() error { return f.fs.check("close", f.name, f.File.Close()) }

// watchedLog is a log of Pebble's. It is extended by many zeros at a time, which are then overwritten: a sync takes two thirds
// of the time if the file's length stays. A log that Pebble reuses has its length already. Readers take zeros for the end, as
// they take the remains of an older log.
type watchedLog struct {
	watchedFile
	end  int64 // of what is written
	room int64 // end of the file
}

// extension is how many zeros are written at once: some thousand appends of a few hundred bytes.
const extension = 1 << 20

// Write adds to the log.
func (l *watchedLog) Write(p []byte) (int, error) {
	l.end += int64(len(p))
	if l.end > l.room {
		l.extend()
	}
	n, err := l.File.Write(p)
	return n, l.fs.check("write", l.name, err)
}

// extend writes zeros behind what is about to be written. Where that fails, as on a full disk, the log grows with each write.
func (l *watchedLog) extend() {
	n, _ := l.File.WriteAt(l.fs.zeros, l.end)
	l.room = l.end + int64(n)
}
