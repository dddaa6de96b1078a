package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/store"
)

// isolation has readers read while writes of many items follow each other.
func (s *suite) isolation(t *testing.T) {
	if s.able.Apart {
		t.Skip("the items of a Write may become visible one after the other")
	}
	cases(t, map[string]func(*testing.T){
		"whoever has seen one item of a write finds the others, item by item": func(t *testing.T) {
			s.watch(t, func(keys []store.Key) (first, second int64, err error) {
				if first, err = s.versionOf(t, keys[0]); err == nil {
					second, err = s.versionOf(t, keys[len(keys)-1])
				}
				return first, second, err
			})
		},
		"whoever has seen one item of a write finds the others by Query": func(t *testing.T) {
			s.watch(t, func(keys []store.Key) (first, second int64, err error) {
				if first, err = s.versionOf(t, keys[len(keys)-1]); err != nil {
					return 0, 0, err
				}
				page, err := s.store.Query(t.Context(), store.Range{Table: store.Work, Partition: keys[0].Partition, Limit: 1})
				if err != nil || len(page.Items) == 0 {
					return first, 0, err
				}
				return first, page.Items[0].Version, nil
			})
		},
	})
}

// watch writes all items of a partition repeatedly, each time with the next version, while look reads the version
// of one item and then that of another.
func (s *suite) watch(t *testing.T, look func(keys []store.Key) (first, second int64, err error)) {
	t.Helper()
	items, rounds, readers := store.MaxOps, 20, 3
	if s.able.Costly {
		items, rounds, readers = 10, 4, 1
	}
	p := s.partition()
	var keys []store.Key
	for i := range items {
		keys = append(keys, key(p, fmt.Sprintf("%03d", i)))
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for {
				first, second, err := look(keys)
				if err != nil || second < first {
					t.Errorf("version %d after version %d was seen, %v", second, first, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	before := store.Absent
	for version := range int64(rounds) {
		var ops []store.Op
		for _, k := range keys {
			ops = append(ops, store.Put(item(k, version+1, "v"), before))
		}
		s.must(t, write(ops...))
		before = store.VersionIs(version + 1)
	}
	close(done)
	group.Wait()
}

// versionOf returns the version of an item, 0 if there is none.
func (s *suite) versionOf(t *testing.T, k store.Key) (int64, error) {
	found, err := s.store.Get(t.Context(), k)
	if err != nil || found[0] == nil {
		return 0, err
	}
	return found[0].Version, nil
}

// CloseUnderWrites checks a durable backend: each of the writes under way while it is closed either ends first, and is
// there after it is opened again, or returns ErrClosed and is not.
func CloseUnderWrites(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	s := &suite{store: store.NewChecked(open(t)), run: "closing"}
	p := s.partition()
	const writers = 8
	var written [writers]int
	begun := make(chan struct{}, writers)
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			for ; ; written[n]++ {
				k := key(p, fmt.Sprintf("%d-%06d", n, written[n]))
				if err := s.store.Write(t.Context(), write(store.Put(item(k, 1, strconv.Itoa(n)), store.Absent))); err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Errorf("Write = %v, want ErrClosed", err)
					}
					return
				}
				if written[n] == 3 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	if err := s.store.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	group.Wait()
	s.store = store.NewChecked(open(t))
	for n := range writers {
		equal(t, fmt.Sprintf("items of writer %d", n), written[n], s.count(t, p, fmt.Sprintf("%d-", n), fmt.Sprintf("%d.", n)))
	}
}

func (s *suite) count(t *testing.T, partition, from, to string) (n int) {
	t.Helper()
	for r := (store.Range{Table: store.Work, Partition: partition, From: from, To: to}); ; {
		page := s.page(t, r)
		n += len(page.Items)
		if !page.More {
			return n
		}
		r.From = page.Items[len(page.Items)-1].Key.Sort + "\x00"
	}
}
