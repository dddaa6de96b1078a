package memory_test

import (
	"testing"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Options{}) },
		storetest.Capabilities{Exclusive: true})
}

func TestConformanceOfOneThatAdvances(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Options{Advances: true}) },
		storetest.Capabilities{Exclusive: true, Advances: true})
}

func TestPortable(t *testing.T) {
	t.Parallel()
	storetest.Portable(t, func(*testing.T) store.Portable { return memory.New(memory.Options{}) })
}
