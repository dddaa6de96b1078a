package patient_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty/patient"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) store.Store { return patient.New(memory.New(memory.Options{}), 1, 5*time.Millisecond) }
	storetest.Run(t, open, storetest.Capabilities{Exclusive: true, Costly: true, Apart: true})
}
