package limited_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/limited"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	open := func(*testing.T) store.Store {
		return limited.New(memory.New(memory.Options{}), limited.Limits{
			PartitionWrites: 1e9, PartitionReads: 1e9, TableWrites: 1e9, TableReads: 1e9, Latency: time.Nanosecond,
		})
	}
	storetest.Run(t, open, storetest.Capabilities{})
}

// put writes 100 KB, some 100 units.
func put(partition string, n int) store.Write {
	key := store.Key{Table: store.Journal, Partition: partition, Sort: fmt.Sprint(n)}
	item := store.Item{Key: key, Version: 1, Value: make([]byte, 100<<10)}
	return store.Write{Token: fmt.Sprint(partition, n), Ops: []store.Op{store.Put(item, store.Always)}}
}

// written returns how many writes of 100 KB a store takes in ten seconds that go to so many partitions in turn.
func written(t *testing.T, partitions int) (taken int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := limited.New(memory.New(memory.Options{}), limited.Limits{})
		began := time.Now()
		for n := 0; time.Since(began) < 10*time.Second; n++ {
			err := s.Write(t.Context(), put(fmt.Sprint("p", n%partitions), n))
			switch {
			case err == nil:
				taken++
			case !errors.Is(err, store.ErrBusy):
				t.Fatal(err)
			}
		}
	})
	return taken
}

func TestAPartitionTakes1000UnitsASecondAndATable4000(t *testing.T) {
	t.Parallel()
	for partitions, want := range map[int]int{1: 110 * 1000 / 1010, 20: 440 * 1000 / 1010} { // one second's worth is saved
		if got := written(t, partitions); got < want-3 || got > want+3 {
			t.Errorf("%d partitions took %d writes of 101 units in 10 s, want %d", partitions, got, want)
		}
	}
}

func TestReadsAreTurnedAwayAfterSomeTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := limited.New(memory.New(memory.Options{}), limited.Limits{PartitionReads: 10})
		if err := s.Write(t.Context(), put("p", 1)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(t.Context(), put("p", 1).Ops[0].Item.Key) // 26 units, of 10 that are ever there
		if !errors.Is(err, store.ErrBusy) || s.TurnedAway() != 5 {
			t.Errorf("Get = %v after %d tries, want ErrBusy after 5", err, s.TurnedAway())
		}
	})
}
