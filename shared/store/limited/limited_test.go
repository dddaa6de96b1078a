package limited_test

import (
	"errors"
	"fmt"
	"slices"
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
func written(t *testing.T, partitions int, limits limited.Limits) (taken int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := limited.New(memory.New(memory.Options{}), limits)
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
		if got := written(t, partitions, limited.Limits{}); got < want-3 || got > want+3 {
			t.Errorf("%d partitions took %d writes of 101 units in 10 s, want %d", partitions, got, want)
		}
	}
}

func TestWhatIsColdHasSavedNothing(t *testing.T) {
	t.Parallel()
	want := (10*1000 + 100) / 101
	if got := written(t, 1, limited.Limits{Cold: true}); got < want-3 || got > want+3 {
		t.Errorf("a new partition took %d writes of 101 units in 10 s, want %d", got, want)
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

// transaction puts two small items.
func transaction(token string) store.Write {
	w := store.Write{Token: token}
	for _, sort := range []string{"a", "b"} {
		key := store.Key{Table: store.Work, Partition: "p", Sort: sort}
		w.Ops = append(w.Ops, store.Put(store.Item{Key: key, Version: 1}, store.Always))
	}
	return w
}

func TestTransactionsConflictWithWhatOverlapsThem(t *testing.T) {
	t.Parallel()
	single := transaction("single")
	single.Ops = single.Ops[:1]
	for name, test := range map[string]struct {
		other store.Write
		after time.Duration // of a transaction of 30 ms, which holds its items from 10 to 20 ms
		want  error
	}{
		"another, at once":        {transaction("2"), time.Millisecond, store.ErrBusy},
		"another, just before":    {transaction("2"), 9 * time.Millisecond, store.ErrBusy},
		"another, after it":       {transaction("2"), 11 * time.Millisecond, nil},
		"a put while it holds":    {single, 5 * time.Millisecond, store.ErrBusy},
		"a put after it":          {single, 15 * time.Millisecond, nil},
		"a read of what it holds": {store.Write{Token: "r", Ops: []store.Op{store.Check(single.Ops[0].Item.Key, store.Absent)}}, 5 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := limited.New(memory.New(memory.Options{}), limited.Limits{Latency: 15 * time.Millisecond, Transaction: 30 * time.Millisecond})
				go func() {
					if err := s.Write(t.Context(), transaction("1")); err != nil {
						t.Errorf("the transaction: %v", err)
					}
				}()
				time.Sleep(test.after)
				if err := s.Write(t.Context(), test.other); !errors.Is(err, test.want) {
					t.Errorf("Write = %v, want %v", err, test.want)
				}
				time.Sleep(time.Second)
				if got := s.Usage().Conflicts; got > 0 != (test.want != nil) {
					t.Errorf("%d conflicts were counted", got)
				}
			})
		})
	}
}

func TestTimesAreDrawnFromTheSeed(t *testing.T) {
	t.Parallel()
	took := func(seed uint64) (all []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := limited.New(memory.New(memory.Options{}), limited.Limits{Tail: 0.5, Seed: seed})
			for range 1001 {
				began := time.Now()
				if _, err := s.Get(t.Context(), transaction("").Ops[0].Item.Key); err != nil {
					t.Error(err)
				}
				all = append(all, time.Since(began))
			}
		})
		return all
	}
	first := took(1)
	if !slices.Equal(first, took(1)) || slices.Equal(first, took(2)) {
		t.Error("times do not follow from the seed")
	}
	slices.Sort(first)
	for quantile, want := range map[int]time.Duration{500: 5 * time.Millisecond, 990: 16 * time.Millisecond} {
		if got := first[quantile]; got < want*8/10 || got > want*12/10 {
			t.Errorf("the quantile %d of 1000 is %v, want about %v", quantile, got, want)
		}
	}
}
