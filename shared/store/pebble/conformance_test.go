package pebble_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty/patient"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, t.TempDir()) }, storetest.Capabilities{Exclusive: true})
}

func TestConformanceBehindFaults(t *testing.T) {
	t.Parallel()
	behind := func(t *testing.T) store.Store { return patient.New(open(t, t.TempDir()), 1, 50*time.Millisecond) }
	storetest.Run(t, behind, storetest.Capabilities{Exclusive: true, Costly: true, Apart: true})
}

func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.Reopen(t, func(t *testing.T) store.Store { return open(t, dir) })
}

func TestCloseUnderWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.CloseUnderWrites(t, func(t *testing.T) store.Store { return open(t, dir) })
}

func TestPortable(t *testing.T) {
	t.Parallel()
	storetest.Portable(t, func(t *testing.T) store.Portable { return open(t, t.TempDir()) })
}
