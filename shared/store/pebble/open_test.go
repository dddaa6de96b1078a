package pebble_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cockroach "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
)

// TestCloseLeavesNothingRunning runs alone: tests in parallel wait for it.
func TestCloseLeavesNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := open(t, filepath.Join(t.TempDir(), "new", "store"))
	mustWrite(t, s, put(slot(1), "x"))
	find(t, s, slot(1))
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	goleak.VerifyNone(t, before)
}

func TestOpenLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	refused(t, dir, store.ErrLocked, dir, "end the other process")
}

func TestOpenForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "holiday.jpg"), "x")
	refused(t, dir, store.ErrDamaged, dir, "holiday.jpg", "name an empty directory")
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("the directory holds %v now", names)
	}
}

// TestOpenAnotherPebble: another program's Pebble database is refused before Pebble touches it, and stays unchanged.
func TestOpenAnotherPebble(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := func() *cockroach.Options {
		return &cockroach.Options{FormatMajorVersion: cockroach.FormatMinSupported, Logger: quiet{}}
	}
	db, err := cockroach.Open(dir, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("a"), []byte("b"), cockroach.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	before := list(t, dir)
	refused(t, dir, store.ErrDamaged, "not a store of Millrace")
	if after := list(t, dir); strings.Join(before, " ") != strings.Join(after, " ") {
		t.Errorf("the directory held %v and holds %v", before, after)
	}
}

type quiet struct{ cockroach.Logger }

func (quiet) Infof(string, ...any) {}

func TestOpenAnotherFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "MILLRACE"), "millrace 99\n")
	refused(t, dir, store.ErrDamaged, "millrace 99", "millrace 1")
}

// TestOpenDamaged: files that are cut or gone are found when the store is opened.
func TestOpenDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"cut":  func(path string) error { return os.Truncate(path, 10) },
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			mustWrite(t, s, put(slot(1), "x"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, file := range list(t, dir) {
				if strings.HasPrefix(file, "MANIFEST") {
					if err := damage(filepath.Join(dir, file)); err != nil {
						t.Fatal(err)
					}
				}
			}
			refused(t, dir, store.ErrDamaged, dir)
		})
	}
}

func TestOpenWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "x")
	if _, err := pebble.Open(filepath.Join(dir, "file", "store"), pebble.Options{}); err == nil {
		t.Error("Open = nil below a file")
	}
}

// TestOpenAfterCrashWhileNew: a crash at any moment of the first opening leaves a directory that can be opened.
func TestOpenAfterCrashWhileNew(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	if err := disk.MkdirAll("data/store", 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := disk.Create("data/store/MILLRACE.new", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, openOn(t, disk), put(slot(1), "x"))
}

// refused demands that the directory is not opened, and checks the error's text.
func refused(t *testing.T, dir string, want error, says ...string) {
	t.Helper()
	s, err := pebble.Open(dir, pebble.Options{})
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, want) {
		t.Fatalf("Open = %v, want %v", err, want)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("Open = %v, which does not say %q", err, text)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
