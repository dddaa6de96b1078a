package meter_test

import (
	"testing"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/store/storetest"
)

// A meter changes nothing in the calls that it prices.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return meter.New(memory.New(memory.Options{})) },
		storetest.Capabilities{Exclusive: true})
}
