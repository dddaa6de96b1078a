package dynamo_test

import (
	"testing"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	tables := emulated(t, nil)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, sameTables(t, tables)) },
		storetest.Capabilities{Costly: true})
}
