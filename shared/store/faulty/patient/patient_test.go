package patient_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// slow is a store that takes a minute for a Write.
type slow struct {
	store.Store
	writes atomic.Int64
}

func (s *slow) Write(ctx context.Context, w store.Write) error {
	s.writes.Add(1)
	time.Sleep(time.Minute) // of virtual time
	return s.Store.Write(ctx, w)
}

// TestTheWaitGrows: a Write that takes longer than the first wait still ends, after few repetitions.
func TestTheWaitGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &slow{Store: memory.New(memory.Options{})}
		s := patient.New(base, 1, time.Millisecond)
		item := store.Item{Key: store.Key{Table: store.Work, Partition: "p", Sort: "s"}, Version: 1}
		w := store.Write{Token: "w", Ops: []store.Op{store.Put(item, store.Absent)}}
		if err := s.Write(t.Context(), w); err != nil || base.writes.Load() > 50 {
			t.Errorf("Write = %v after %d tries, want nil after one for each doubling of the wait", err, base.writes.Load())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
