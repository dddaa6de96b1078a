package dynamo_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty/patient"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	tables := emulated(t, nil)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, sameTables(t, tables)) },
		storetest.Capabilities{Costly: true, Apart: true})
}

func TestConformanceBehindFaults(t *testing.T) {
	t.Parallel()
	tables := emulated(t, nil)
	behind := func(t *testing.T) store.Store {
		return patient.New(open(t, sameTables(t, tables)), 1, 250*time.Millisecond)
	}
	storetest.Run(t, behind, storetest.Capabilities{Costly: true, Apart: true})
}

func TestPortable(t *testing.T) {
	t.Parallel()
	storetest.Portable(t, func(t *testing.T) store.Portable { return emulated(t, nil) })
}
