package pebble_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// logSize returns the bytes of all logs.
func logSize(t *testing.T, fs vfs.FS) (size int64) {
	t.Helper()
	names, err := fs.List("data/store")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := fs.Stat(fs.PathJoin("data/store", name))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

func TestAWriteSeldomMakesALogLonger(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	s := openOn(t, disk)
	mustWrite(t, s, put(slot(1), "x"))
	before := logSize(t, disk)
	for n := int64(2); n <= 100; n++ {
		mustWrite(t, s, put(slot(n), "x"))
	}
	if after := logSize(t, disk); after != before {
		t.Errorf("the logs have %d bytes after 99 writes, had %d: each sync noted a new length", after, before)
	}
	again := openOn(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	if find(t, again, slot(100)) == nil {
		t.Error("what stood before the zeros is gone after a crash")
	}
}

func TestALogThatCannotBeExtendedGrowsWithEachWrite(t *testing.T) {
	t.Parallel()
	disk, trouble := vfs.NewCrashableMem(), &trouble{}
	trouble.begin(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt {
			return errors.New("no space left on device")
		}
		return nil
	})
	s := openOn(t, errorfs.Wrap(disk, trouble))
	for n := int64(1); n <= 3; n++ {
		mustWrite(t, s, put(slot(n), "x"))
	}
	again := openOn(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	if find(t, again, slot(3)) == nil {
		t.Error("what was acknowledged is gone after a crash")
	}
}
