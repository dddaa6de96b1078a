package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
)

func (s *suite) write(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"Absent holds while no item has the key": func(t *testing.T) {
			k := s.fresh()
			s.must(t, write(store.Put(item(k, 1, "first"), store.Absent)))
			s.refused(t, write(store.Put(item(k, 2, "second"), store.Absent)), 0)
			s.holds(t, k, "first")
		},
		"VersionIs holds while there is an item with exactly that version": func(t *testing.T) {
			k := s.fresh()
			s.refused(t, write(store.Put(item(k, 2, "none"), store.VersionIs(1))), 0)
			s.put(t, item(k, 5, "five"))
			s.refused(t, write(store.Put(item(k, 6, "six"), store.VersionIs(4))), 0)
			s.refused(t, write(store.Put(item(k, 6, "six"), store.VersionIs(6))), 0)
			s.must(t, write(store.Put(item(k, 6, "six"), store.VersionIs(5))))
			s.holds(t, k, "six")
		},
		"Always replaces": func(t *testing.T) {
			k := s.fresh()
			s.put(t, item(k, 9, "nine"), item(k, 2, "two"))
			equal(t, "version", int64(2), s.holds(t, k, "two").Version)
		},
		"Delete removes, and is no error where nothing is": func(t *testing.T) {
			k := s.fresh()
			s.must(t, write(store.Delete(k, store.Always)))
			s.put(t, item(k, 1, "x"))
			s.refused(t, write(store.Delete(k, store.VersionIs(2))), 0)
			s.must(t, write(store.Delete(k, store.VersionIs(1))))
			s.holds(t, k, "")
			s.refused(t, write(store.Delete(k, store.VersionIs(1))), 0)
		},
		"Check changes nothing and demands its condition": func(t *testing.T) {
			p := s.partition()
			s.put(t, item(key(p, "a"), 3, "a"))
			s.must(t, write(store.Check(key(p, "a"), store.VersionIs(3)), store.Put(item(key(p, "b"), 1, "b"), store.Always)))
			s.refused(t, write(store.Put(item(key(p, "c"), 1, "c"), store.Always), store.Check(key(p, "a"), store.Absent)), 1)
			s.must(t, write(store.Check(key(p, "a"), store.VersionIs(3))))
			s.refused(t, write(store.Check(key(p, "z"), store.VersionIs(3))), 0)
			s.must(t, write(store.Check(key(p, "z"), store.Absent)))
			equal(t, "items", []string{"a", "b"}, s.sorts(t, store.Range{Partition: p}))
		},
		"demands each condition of few operations and of many": func(t *testing.T) {
			for _, n := range []int{1, 12} {
				p := s.partition()
				there := func(i int) store.Key { return key(p, fmt.Sprint("there", i)) }
				none := func(i int) store.Key { return key(p, fmt.Sprint("none", i)) }
				for i := range n {
					s.put(t, item(there(i), 3, "x"))
				}
				before := s.sorts(t, store.Range{Partition: p})
				holds := map[string]func(i int) store.Op{
					"replace": func(i int) store.Op { return store.Put(item(there(i), 4, "y"), store.VersionIs(3)) },
					"put":     func(i int) store.Op { return store.Put(item(none(i), 4, "y"), store.Absent) },
					"delete":  func(i int) store.Op { return store.Delete(there(i), store.VersionIs(3)) },
					"is":      func(i int) store.Op { return store.Check(there(i), store.VersionIs(3)) },
					"is not":  func(i int) store.Op { return store.Check(none(i), store.Absent) },
				}
				for kind, fail := range map[string][]store.Op{
					"replace": {store.Put(item(there(n-1), 4, "y"), store.VersionIs(2)), store.Put(item(none(0), 4, "y"), store.VersionIs(3))},
					"put":     {store.Put(item(there(0), 4, "y"), store.Absent)},
					"delete":  {store.Delete(there(n-1), store.VersionIs(2)), store.Delete(none(0), store.VersionIs(3))},
					"is":      {store.Check(there(n-1), store.VersionIs(2)), store.Check(none(0), store.VersionIs(3))},
					"is not":  {store.Check(there(0), store.Absent)},
				} {
					for _, last := range fail {
						ops := []store.Op{store.Put(item(key(p, "beside"), 1, "b"), store.Always)}
						for i := range n - 1 {
							ops = append(ops, holds[kind](i))
						}
						s.refused(t, write(append(ops, last)...), n)
						equal(t, "items after a refused "+kind, before, s.sorts(t, store.Range{Partition: p}))
					}
				}
				var ops []store.Op
				for i := range n {
					ops = append(ops, holds["replace"](i), holds["put"](i), store.Put(item(key(p, fmt.Sprint("always", i)), 1, "a"), store.Always),
						store.Check(key(p, fmt.Sprint("nowhere", i)), store.Absent))
				}
				s.must(t, write(ops...))
				ops = nil
				for i := range n {
					ops = append(ops, store.Check(there(i), store.VersionIs(4)), store.Delete(none(i), store.VersionIs(4)),
						store.Delete(key(p, fmt.Sprint("always", i)), store.Always), store.Delete(key(p, fmt.Sprint("nowhere", i)), store.Always))
				}
				s.must(t, write(ops...))
				equal(t, "items in the end", before, s.sorts(t, store.Range{Partition: p}))
				s.holds(t, there(n-1), "y")
			}
		},
		"is applied as a whole or not at all": func(t *testing.T) {
			p := s.partition()
			s.put(t, item(key(p, "there"), 1, "x"))
			s.refused(t, write(
				store.Put(item(key(p, "a"), 1, "a"), store.Absent),
				store.Delete(key(p, "there"), store.Always),
				store.Put(item(key(p, "b"), 1, "b"), store.VersionIs(1)),
			), 2)
			equal(t, "items", []string{"there"}, s.sorts(t, store.Range{Partition: p}))
		},
		"spans tables and partitions": func(t *testing.T) {
			a, b := s.fresh(), s.fresh()
			b.Table = store.Journal
			s.must(t, write(store.Put(item(a, 1, "a"), store.Absent), store.Put(item(b, 1, "b"), store.Absent)))
			s.holds(t, a, "a")
			s.holds(t, b, "b")
		},
		"is too late after NotAfter": func(t *testing.T) {
			k := s.fresh()
			w := write(store.Put(item(k, 1, "late"), store.Absent))
			w.NotAfter = time.Now().Add(-time.Millisecond)
			if err := s.store.Write(t.Context(), w); !errors.Is(err, store.ErrTooLate) {
				t.Errorf("Write = %v, want ErrTooLate", err)
			}
			s.holds(t, k, "")
			w.NotAfter = time.Now().Add(time.Hour)
			s.must(t, w)
		},
	})
}

// refused demands a conflict of exactly these operations.
func (s *suite) refused(t *testing.T, w store.Write, ops ...int) {
	t.Helper()
	_ = s.conflictOf(t, w, ops...)
}

// conflictOf demands a conflict of exactly these operations, and returns it.
func (s *suite) conflictOf(t *testing.T, w store.Write, ops ...int) *store.Conflict {
	t.Helper()
	err := s.store.Write(t.Context(), w)
	conflict := store.AsConflict(err)
	if conflict == nil {
		t.Fatalf("Write = %v, want a conflict", err)
	}
	var failed []int
	for _, f := range conflict.Failed {
		failed = append(failed, f.Op)
	}
	equal(t, "failed operations", ops, failed)
	return conflict
}

func (s *suite) conflict(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"names every operation that failed, with what was found": func(t *testing.T) {
			p := s.partition()
			s.put(t, item(key(p, "a"), 4, "A"))
			conflict := s.conflictOf(t, write(
				store.Put(item(key(p, "a"), 5, "new"), store.Absent),
				store.Put(item(key(p, "b"), 5, "fine"), store.Absent),
				store.Put(item(key(p, "c"), 5, "new"), store.VersionIs(1)),
			), 0, 2)
			found, failed := conflict.At(0)
			if !failed || found == nil || found.Version != 4 || string(found.Value) != "A" || found.Key != key(p, "a") {
				t.Errorf("found %+v at 0", found)
			}
			if found, failed := conflict.At(2); !failed || found != nil {
				t.Errorf("found %+v at 2, want none", found)
			}
			if _, failed := conflict.At(1); failed {
				t.Error("operation 1 is named, and did not fail")
			}
		},
		"carries the item without another read, of a lone put and of a lone delete": func(t *testing.T) {
			k := s.fresh()
			s.put(t, item(k, 4, "A"))
			for _, op := range []store.Op{store.Put(item(k, 5, "B"), store.VersionIs(3)), store.Delete(k, store.VersionIs(3))} {
				found, _ := s.conflictOf(t, write(op), 0).At(0)
				if found == nil || string(found.Value) != "A" {
					t.Errorf("found %+v", found)
				}
			}
		},
	})
}

func (s *suite) token(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"a repeated Write is answered as applied, once": func(t *testing.T) {
			k := s.fresh()
			w := write(store.Put(item(k, 1, "x"), store.Absent))
			s.must(t, w)
			s.must(t, w)
			s.holds(t, k, "x")
		},
		"a repeated Write of several operations, too": func(t *testing.T) {
			p := s.partition()
			s.put(t, item(key(p, "head"), 1, "1"))
			w := write(
				store.Put(item(key(p, "head"), 2, "2"), store.VersionIs(1)),
				store.Put(item(key(p, "entry"), 2, "e"), store.Absent),
			)
			s.must(t, w)
			s.must(t, w)
			s.must(t, write(store.Put(item(key(p, "head"), 3, "3"), store.VersionIs(2))))
			s.must(t, w) // the entry still carries its token
			s.holds(t, key(p, "head"), "3")
		},
		"another's Write with the same content is refused": func(t *testing.T) {
			k := s.fresh()
			op := store.Put(item(k, 1, "x"), store.Absent)
			s.must(t, write(op))
			s.refused(t, write(op), 0)
		},
	})
}

func (s *suite) limits(t *testing.T) {
	many := func(n int) (ops []store.Op) {
		p := s.partition()
		for i := range n {
			ops = append(ops, store.Put(item(key(p, strings.Repeat("x", i+1)), 1, "v"), store.Absent))
		}
		return ops
	}
	large := func(n, size int) []store.Op {
		ops := many(n)
		for i := range ops {
			ops[i].Item.Value = make([]byte, size)
		}
		return ops
	}
	invalid := map[string]store.Write{
		"no token":             {Ops: many(1)},
		"no operations":        {Token: "t"},
		"too many operations":  write(many(s.store.MaxOps() + 1)...),
		"no version":           write(store.Put(item(s.fresh(), 0, "v"), store.Always)),
		"a value too large":    write(store.Put(item(s.fresh(), 1, strings.Repeat("v", store.MaxValue+1)), store.Always)),
		"values too large":     write(large(9, store.MaxValue)...),
		"no table":             write(store.Put(item(store.Key{Partition: "p", Sort: "s"}, 1, "v"), store.Always)),
		"no partition":         write(store.Put(item(key("", "s"), 1, "v"), store.Always)),
		"no sort":              write(store.Put(item(key("p", ""), 1, "v"), store.Always)),
		"a partition too long": write(store.Put(item(key(strings.Repeat("p", store.MaxPartition+1), "s"), 1, "v"), store.Always)),
		"a sort too long":      write(store.Put(item(key("p", strings.Repeat("s", store.MaxSort+1)), 1, "v"), store.Always)),
		"no UTF-8":             write(store.Put(item(key("p\xff", "s"), 1, "v"), store.Always)),
		"a check of nothing":   write(store.Check(s.fresh(), store.Always)),
		"one key twice":        write(append(many(1), many(1)[0], store.Delete(key("twice", "s"), store.Always), store.Delete(key("twice", "s"), store.Always))...),
	}
	all := map[string]func(*testing.T){
		"a Write may have as many operations as the store says": func(t *testing.T) { s.must(t, write(many(s.store.MaxOps())...)) },
		"the values of a Write may have the largest size together": func(t *testing.T) {
			s.must(t, write(large(12, store.MaxWriteBytes/12)...))
		},
		"a value may have the largest size": func(t *testing.T) {
			k := s.fresh()
			value := strings.Repeat("v", store.MaxValue)
			s.must(t, write(store.Put(item(k, 1, value), store.Absent)))
			s.holds(t, k, value)
		},
		"keys may have the largest size": func(t *testing.T) {
			p := s.partition()
			k := key(p+strings.Repeat("p", store.MaxPartition-len(p)), strings.Repeat("ü", store.MaxSort/2))
			s.must(t, write(store.Put(item(k, 1, "v"), store.Absent)))
			s.holds(t, k, "v")
		},
	}
	for name, w := range invalid {
		all["refused with nothing stored: "+name] = func(t *testing.T) {
			if err := s.store.Write(t.Context(), w); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Write = %v, want ErrInvalid", err)
			}
			for _, op := range w.Ops {
				if found, err := s.store.Get(t.Context(), op.Item.Key); err == nil && found[0] != nil { // an invalid key cannot be read
					t.Errorf("item %v is there", op.Item.Key)
				}
			}
		}
	}
	cases(t, all)
}
