package pebble_test

import (
	"testing"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, t.TempDir()) }, storetest.Capabilities{Exclusive: true})
}

func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.Reopen(t, func(t *testing.T) store.Store { return open(t, dir) })
}
