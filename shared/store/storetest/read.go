package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
)

func (s *suite) get(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"has one element per key in the keys' order, nil where there is no item": func(t *testing.T) {
			p := s.partition()
			s.put(t, item(key(p, "a"), 1, "A"), item(key(p, "c"), 3, "C"))
			found, err := s.store.Get(t.Context(), key(p, "c"), key(p, "b"), key(p, "a"))
			if err != nil || len(found) != 3 || found[0] == nil || found[1] != nil || found[2] == nil {
				t.Fatalf("Get = %v, %v", found, err)
			}
			equal(t, "values", []string{"C", "A"}, []string{string(found[0].Value), string(found[2].Value)})
			equal(t, "versions", []int64{3, 1}, []int64{found[0].Version, found[2].Version})
			equal(t, "key", key(p, "c"), found[0].Key)
		},
		"takes a key twice, and more keys than one request holds": func(t *testing.T) {
			p := s.partition()
			s.put(t, item(key(p, "000"), 1, "first"), item(key(p, "119"), 1, "last"))
			var keys []store.Key
			for i := range 120 {
				keys = append(keys, key(p, fmt.Sprintf("%03d", i)))
			}
			found, err := s.store.Get(t.Context(), append(keys, keys[0])...)
			if err != nil || len(found) != 121 {
				t.Fatalf("Get = %d elements, %v, want 121", len(found), err)
			}
			for i, f := range found {
				if there := i == 0 || i == 119 || i == 120; (f != nil) != there {
					t.Errorf("element %d is %v", i, f)
				}
			}
		},
		"refuses keys that break a limit": func(t *testing.T) {
			for name, k := range map[string]store.Key{
				"no table": {Partition: "p", Sort: "s"}, "no partition": key("", "s"), "no sort": key("p", ""), "no UTF-8": key("p", "\xff"),
			} {
				_, get := s.store.Get(t.Context(), k)
				_, reserve := s.store.Reserve(t.Context(), k, 1, micros())
				_, sequence := s.store.Sequence(t.Context(), k, false)
				for method, err := range map[string]error{
					"Get": get, "Reserve": reserve, "Sequence": sequence, "Raise": s.store.Raise(t.Context(), k, 1, 1),
				} {
					if !errors.Is(err, store.ErrInvalid) {
						t.Errorf("%s with %s = %v, want ErrInvalid", method, name, err)
					}
				}
			}
		},
		"answers nothing for no keys": func(t *testing.T) {
			if found, err := s.store.Get(t.Context()); err != nil || len(found) != 0 {
				t.Errorf("Get() = %v, %v", found, err)
			}
		},
		"keeps tables apart": func(t *testing.T) {
			k := s.fresh()
			other := k
			other.Table = store.Definitions
			s.put(t, item(k, 1, "work"))
			s.holds(t, other, "")
		},
		"keeps Expires to the second, and the token": func(t *testing.T) {
			i := item(s.fresh(), 1, "x")
			i.Expires = time.Unix(4_000_000_000, 0)
			w := write(store.Put(i, store.Always))
			s.must(t, w)
			found := s.holds(t, i.Key, "x")
			equal(t, "Expires", i.Expires.Unix(), found.Expires.Unix())
			equal(t, "Token", w.Token, found.Token)
		},
		"answers a zero Expires where none was given, and an empty value": func(t *testing.T) {
			k := s.fresh()
			s.put(t, item(k, 7, ""))
			found, err := s.store.Get(t.Context(), k)
			if err != nil || found[0] == nil || !found[0].Expires.IsZero() || len(found[0].Value) != 0 {
				t.Errorf("Get = %+v, %v", found, err)
			}
		},
		"still shows an expired item, or none": func(t *testing.T) {
			i := item(s.fresh(), 1, "old")
			i.Expires = time.Unix(1_000_000_000, 0)
			s.put(t, i)
			found, err := s.store.Get(t.Context(), i.Key)
			if err != nil || found[0] != nil && string(found[0].Value) != "old" {
				t.Errorf("Get = %v, %v", found, err)
			}
		},
	})
}

// odd are sort keys in bytewise order that a careless encoding would confuse.
var odd = []string{"\x00", "\x00\x00", "\x00\x01", "\x01", " ", "#", "/", "a", "a\x00", "a\x00b", "a#b", "aa", "ä", "日本", "\U0001F600"}

func (s *suite) query(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"is ordered bytewise": func(t *testing.T) {
			p := s.partition()
			for i := len(odd) - 1; i >= 0; i-- {
				s.put(t, item(key(p, odd[i]), 1, odd[i]))
			}
			equal(t, "sorts", odd, s.sorts(t, store.Range{Partition: p}))
		},
		"takes From, leaves out To": func(t *testing.T) {
			p := s.letters(t)
			equal(t, "b to d", []string{"b", "c"}, s.sorts(t, store.Range{Partition: p, From: "b", To: "d"}))
			equal(t, "from d", []string{"d", "e"}, s.sorts(t, store.Range{Partition: p, From: "d"}))
			equal(t, "to b", []string{"a"}, s.sorts(t, store.Range{Partition: p, To: "b"}))
			equal(t, "nothing between", []string(nil), s.sorts(t, store.Range{Partition: p, From: "c", To: "c"}))
			equal(t, "backward range", []string(nil), s.sorts(t, store.Range{Partition: p, From: "d", To: "b"}))
		},
		"goes backward": func(t *testing.T) {
			p := s.letters(t)
			equal(t, "all", []string{"e", "d", "c", "b", "a"}, s.sorts(t, store.Range{Partition: p, Backward: true}))
			equal(t, "b to d", []string{"c", "b"}, s.sorts(t, store.Range{Partition: p, From: "b", To: "d", Backward: true}))
		},
		"is cut by Limit, and says More": func(t *testing.T) {
			p := s.letters(t)
			page := s.page(t, store.Range{Partition: p, Limit: 2})
			equal(t, "first two", []string{"a", "b"}, sorts(page))
			if !page.More {
				t.Error("More = false with items left")
			}
			page = s.page(t, store.Range{Partition: p, Limit: 2, Backward: true})
			equal(t, "last two", []string{"e", "d"}, sorts(page))
			if page = s.page(t, store.Range{Partition: p, Limit: 9}); page.More || len(page.Items) != 5 {
				t.Errorf("Limit 9 = %d items, More %v", len(page.Items), page.More)
			}
		},
		"keeps partitions apart that begin alike": func(t *testing.T) {
			p := s.partition()
			for _, suffix := range []string{"", "\x00", "\x00\x01", "#", "a", "\x01"} {
				s.put(t, item(key(p+suffix, "x"), 1, suffix))
			}
			for _, suffix := range []string{"", "\x00", "\x00\x01", "#", "a", "\x01"} {
				page := s.page(t, store.Range{Partition: p + suffix})
				if len(page.Items) != 1 || string(page.Items[0].Value) != suffix {
					t.Errorf("partition %q has %v", suffix, page.Items)
				}
			}
		},
		"refuses a range of no partition or no table, or with ends that are not UTF-8": func(t *testing.T) {
			whole := store.Range{Table: store.Work, Partition: "p"}
			from, to := whole, whole
			from.From, to.To = "\xff", "\xff"
			for _, r := range []store.Range{{Table: store.Work}, {Partition: "p"}, from, to} {
				_, query := s.store.Query(t.Context(), r)
				if remove := s.store.Remove(t.Context(), r); !errors.Is(query, store.ErrInvalid) || !errors.Is(remove, store.ErrInvalid) {
					t.Errorf("Query(%+v) = %v, Remove = %v, want ErrInvalid", r, query, remove)
				}
			}
		},
		"is empty for a partition that is not there": func(t *testing.T) {
			if page := s.page(t, store.Range{Partition: s.partition()}); len(page.Items) != 0 || page.More {
				t.Errorf("Query = %+v", page)
			}
		},
		"goes on from the last item's Sort where the backend cut": func(t *testing.T) {
			p := s.partition()
			value := strings.Repeat("v", 300<<10)
			var want, got []string
			for i := range 6 {
				want = append(want, fmt.Sprint(i))
				s.put(t, item(key(p, fmt.Sprint(i)), 1, value))
			}
			for r := (store.Range{Table: store.Work, Partition: p}); ; r.From = got[len(got)-1] + "\x00" {
				page := s.page(t, r)
				got = append(got, sorts(page)...)
				if !page.More {
					break
				}
			}
			equal(t, "all pages", want, got)
		},
		"answers whole items": func(t *testing.T) {
			i := item(s.fresh(), 42, "value")
			i.Expires = time.Unix(4_000_000_000, 0)
			w := write(store.Put(i, store.Always))
			s.must(t, w)
			page := s.page(t, store.Range{Partition: i.Key.Partition})
			i.Token = w.Token
			got := page.Items[0]
			got.Expires = time.Unix(got.Expires.Unix(), 0)
			equal(t, "item", i, got)
		},
		"may be eventual": func(t *testing.T) {
			p := s.letters(t)
			page, err := s.store.Query(t.Context(), store.Range{Table: store.Work, Partition: p, Eventual: true})
			if err != nil || len(page.Items) > 5 {
				t.Errorf("Query = %v, %v", page, err)
			}
		},
	})
}

// letters stores the items a to e in a partition, together with one elsewhere that is never removed: without it, a
// request that a bad network repeats would restore what a case has removed.
func (s *suite) letters(t *testing.T) string {
	t.Helper()
	p := s.partition()
	ops := []store.Op{store.Put(item(s.fresh(), 1, "letters"), store.Absent)}
	for _, letter := range "abcde" {
		ops = append(ops, store.Put(item(key(p, string(letter)), 1, string(letter)), store.Absent))
	}
	s.must(t, write(ops...))
	return p
}

func (s *suite) page(t *testing.T, r store.Range) store.Page {
	t.Helper()
	r.Table = store.Work
	page, err := s.store.Query(t.Context(), r)
	if err != nil {
		t.Fatalf("Query(%+v) = %v", r, err)
	}
	return page
}

func (s *suite) sorts(t *testing.T, r store.Range) []string {
	t.Helper()
	return sorts(s.page(t, r))
}

func sorts(p store.Page) []string {
	var all []string
	for _, i := range p.Items {
		all = append(all, i.Key.Sort)
	}
	return all
}

func (s *suite) remove(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"deletes the items between From and To, and no others": func(t *testing.T) {
			p := s.letters(t)
			s.put(t, item(key(p+"\x00", "c"), 1, "other"))
			s.removeRange(t, store.Range{Table: store.Work, Partition: p, From: "b", To: "d"})
			equal(t, "left", []string{"a", "d", "e"}, s.sorts(t, store.Range{Partition: p}))
			s.holds(t, key(p+"\x00", "c"), "other")
		},
		"deletes a whole partition, ignores the rest of the range, and may be repeated": func(t *testing.T) {
			p := s.letters(t)
			r := store.Range{Table: store.Work, Partition: p, Backward: true, Limit: 1, Eventual: true}
			s.removeRange(t, r)
			s.removeRange(t, r)
			equal(t, "left", []string(nil), s.sorts(t, store.Range{Partition: p}))
		},
		"deletes more than one request holds": func(t *testing.T) {
			p := s.partition()
			var ops []store.Op
			for i := range 60 {
				ops = append(ops, store.Put(item(key(p, fmt.Sprintf("%03d", i)), 1, "x"), store.Always))
			}
			s.must(t, write(ops...))
			s.removeRange(t, store.Range{Table: store.Work, Partition: p, To: "059"})
			equal(t, "left", []string{"059"}, s.sorts(t, store.Range{Partition: p}))
		},
		"leaves keys absent for conditions": func(t *testing.T) {
			p := s.letters(t)
			s.removeRange(t, store.Range{Table: store.Work, Partition: p})
			s.must(t, write(store.Put(item(key(p, "a"), 1, "again"), store.Absent)))
		},
	})
}

func (s *suite) removeRange(t *testing.T, r store.Range) {
	t.Helper()
	if err := s.store.Remove(t.Context(), r); err != nil {
		t.Fatalf("Remove = %v", err)
	}
}
