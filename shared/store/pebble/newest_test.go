package pebble_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/store"
)

// TestSlotsAreWrittenOnceInAnyOrder writes slots mostly in order, some late and some twice, several in one write, and opens the store
// again in between: each is written if and only if there is none.
func TestSlotsAreWrittenOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	there := map[int64]bool{}
	next, writes := int64(1), 0
	for range 60 {
		s := open(t, dir)
		for range 50 {
			position := next
			if random.IntN(2) == 0 {
				position = max(1, next-random.Int64N(40)) // late, or there already
			} else {
				next += 1 + random.Int64N(3)
			}
			key := func(position int64) store.Key {
				return store.Key{Table: store.Journal, Partition: fmt.Sprintf("J#main#%03d", position/128), Sort: fmt.Sprintf("%06d", position)}
			}
			writes++
			w := store.Write{Token: fmt.Sprint("t", writes), Ops: []store.Op{store.Put(store.Item{Key: key(position), Version: 1}, store.Absent)}}
			both := position%5 == 0
			if both {
				w.Ops = append(w.Ops, store.Put(store.Item{Key: key(position + 7), Version: 1}, store.Absent))
			}
			taken := there[position] || both && there[position+7]
			err := s.Write(t.Context(), w)
			if conflict := store.AsConflict(err) != nil; conflict != taken || !conflict && err != nil {
				t.Fatalf("write %d of slot %d = %v, want a conflict: %v", writes, position, err, taken)
			}
			if err == nil {
				there[position] = true
				there[position+7] = there[position+7] || both
			}
			if random.IntN(100) == 0 { // what is removed may be written again
				all := store.Range{Table: store.Journal, Partition: key(position).Partition}
				if err := s.Remove(t.Context(), all); err != nil {
					t.Fatal(err)
				}
				for other := range there {
					if other/128 == position/128 {
						delete(there, other)
					}
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlotsAreWrittenOnceByMany: of callers that write the same slots at once, in whatever order, one writes each; those of a new partition come
// into the same commit.
func TestSlotsAreWrittenOnceByMany(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	defer s.Close()
	const partitions, slots, writers = 400, 12, 3
	for partition := range partitions {
		var wrote [slots]atomic.Int32
		var group sync.WaitGroup
		for w := range writers {
			for i, position := range rand.New(rand.NewPCG(uint64(partition), uint64(w))).Perm(slots) {
				group.Go(func() {
					key := store.Key{Table: store.Journal, Partition: fmt.Sprintf("J#main#%06d", partition), Sort: fmt.Sprintf("%06d", position)}
					put := store.Put(store.Item{Key: key, Version: 1}, store.Absent)
					err := s.Write(t.Context(), store.Write{Token: fmt.Sprint(partition, w, i), Ops: []store.Op{put}})
					if err == nil {
						wrote[position].Add(1)
					} else if store.AsConflict(err) == nil {
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		for position := range wrote {
			if n := wrote[position].Load(); n != 1 {
				t.Fatalf("slot %d of partition %d was written %d times", position, partition, n)
			}
		}
	}
}
