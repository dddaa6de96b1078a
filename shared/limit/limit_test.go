package limit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// bench is a store and the limits of a process, with counts of what is asked of the store.
type bench struct {
	store.Store
	*limit.Limits
	t      *testing.T
	writes int
	reads  int
}

func setup(t *testing.T, alone bool) *bench {
	t.Helper()
	b := &bench{Store: memory.New(memory.Options{}), t: t}
	b.Limits = limit.New(b, alone)
	return b
}

// Query counts reads.
func (b *bench) Query(ctx context.Context, r store.Range) (store.Page, error) {
	b.reads++
	return b.Store.Query(ctx, r)
}

func (b *bench) write(ops ...store.Op) error {
	b.writes++
	return b.Store.Write(b.t.Context(), store.Write{Token: fmt.Sprint("write-", b.writes), Ops: ops})
}

// begin returns a Taking that has read the limits.
func (b *bench) begin(limits ...string) *limit.Taking {
	b.t.Helper()
	taking := b.Begin()
	for _, name := range limits {
		if err := taking.Read(b.t.Context(), name); err != nil {
			b.t.Fatalf("Read(%s) = %v", name, err)
		}
	}
	return &taking
}

// take takes slots as one write, or returns which limit has none free.
func (b *bench) take(holder string, all ...limit.Wanted) (slots []limit.Slot, missing string) {
	b.t.Helper()
	var names []string
	for _, w := range all {
		names = append(names, w.Limit)
	}
	slots, missing = b.begin(names...).Take(all...)
	var ops []store.Op
	for i := range slots {
		slots[i].Holder = holder
		ops = append(ops, slots[i].Take())
	}
	if missing == "" {
		if err := b.write(ops...); err != nil {
			b.t.Fatalf("take slots for %s: %v", holder, err)
		}
		b.Took(slots)
	}
	return slots, missing
}

func (b *bench) giveBack(slots []limit.Slot) {
	b.t.Helper()
	for i := range slots {
		if err := b.write(slots[i].GiveBack()); err != nil {
			b.t.Fatalf("GiveBack: %v", err)
		}
	}
	b.GaveBack(slots)
}

func (b *bench) taken(name string) *limit.Set {
	b.t.Helper()
	set, err := b.Read(b.t.Context(), name)
	if err != nil {
		b.t.Fatalf("Read(%s) = %v", name, err)
	}
	return set
}

// bothWays runs a test for a process alone and for one of many.
func bothWays(t *testing.T, test func(t *testing.T, b *bench)) {
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, alone))
		})
	}
}

// No more slots are taken than a limit has, the lowest free one is taken next, and where one limit has none, none of another is taken.
func TestSlotsAreTakenUpToTheLimit(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		a, c := limit.Wanted{Limit: "a", Most: 100}, limit.Wanted{Limit: "c", Most: 66}
		var all [][]limit.Slot
		for n := range 66 {
			slots, missing := b.take(fmt.Sprint(n), a, c)
			if missing != "" || slots[0].Number != n || slots[1].Number != n {
				t.Fatalf("Take %d = %v, %q, want the lowest slot of each", n, slots, missing)
			}
			all = append(all, slots)
		}
		if _, missing := b.take("more", a, c); missing != "c" {
			t.Errorf("Take = %q, want c to have none free", missing)
		}
		b.giveBack(all[64])
		b.giveBack(all[3])
		for _, want := range []int{3, 64} {
			if slots, missing := b.take("again", c); missing != "" || slots[0].Number != want {
				t.Errorf("Take = %v, %q, want the slot %d", slots, missing, want)
			}
		}
		if n := b.taken("a").Count(); n != 64 {
			t.Errorf("%d slots of a are taken, want 64", n)
		}
		if _, missing := b.take("lowered", limit.Wanted{Limit: "c", Most: 5}); missing != "c" {
			t.Errorf("Take = %q, want none free below what is taken", missing)
		}
	})
}

// Of two that have read the same, one takes the slot: the other's write is refused.
func TestASlotIsTakenOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	var ops []store.Op
	for _, holder := range []string{"one", "other"} {
		slots, _ := b.begin("a").Take(limit.Wanted{Limit: "a", Most: 5})
		slots[0].Holder = holder
		ops = append(ops, slots[0].Take())
	}
	if err := b.write(ops[0]); err != nil {
		t.Fatal(err)
	}
	if err := b.write(ops[1]); store.AsConflict(err) == nil {
		t.Errorf("Take = %v, want a conflict", err)
	}
}

// One Taking does not choose a slot twice before it is written, until it is reset.
func TestATakingChoosesEachSlotOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	w := limit.Wanted{Limit: "a", Most: 2}
	taking := b.begin("a")
	for want := range 2 {
		if slots, missing := taking.Take(w); missing != "" || slots[0].Number != want {
			t.Errorf("Take = %v, %q, want the slot %d", slots, missing, want)
		}
	}
	if _, missing := taking.Take(w); missing != "a" {
		t.Errorf("Take = %q, want none free", missing)
	}
	taking.Reset()
	taking.Know("a", b.taken("a"))
	if slots, missing := taking.Take(w); missing != "" || slots[0].Number != 0 {
		t.Errorf("Take = %v, %q, want the slot 0", slots, missing)
	}
}

// Slots that are taken with a mark are found by it, also by a process that has not taken them; those without are not.
func TestMarkedSlotsAreFound(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		b.taken("a")
		marked, _ := b.take("one", limit.Wanted{Limit: "a", Most: 5, Mark: "m"})
		b.take("two", limit.Wanted{Limit: "a", Most: 5})
		elsewhere, err := limit.New(b, false).Read(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		want := []limit.Slot{{Limit: "a", Number: 0, Holder: "one", Mark: "m"}}
		for _, set := range []*limit.Set{b.taken("a"), elsewhere} {
			if diff := cmp.Diff(want, set.Marked()); diff != "" {
				t.Errorf("marked slots (-want +got):\n%s", diff)
			}
		}
		b.giveBack(marked)
		if left := b.taken("a").Marked(); len(left) > 0 {
			t.Errorf("Marked = %v after it was given back", left)
		}
	})
}

// A process alone reads a limit once, until it forgets; one of many reads it each time, and finds what others have taken.
func TestOnlyAProcessAloneKeepsLimits(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		alone := t.Name() == "TestOnlyAProcessAloneKeepsLimits/alone"
		b.taken("a")
		b.take("mine", limit.Wanted{Limit: "a", Most: 5})
		if err := b.write((&limit.Slot{Limit: "a", Number: 1, Holder: "other"}).Take()); err != nil {
			t.Fatal(err)
		}
		if n, want := b.taken("a").Count(), map[bool]int{true: 1, false: 2}[alone]; n != want {
			t.Errorf("%d slots are taken, want %d", n, want)
		}
		if want := map[bool]int{true: 1, false: 3}[alone]; b.reads != want {
			t.Errorf("%d reads, want %d", b.reads, want)
		}
		b.Forget()
		if n := b.taken("a").Count(); n != 2 {
			t.Errorf("%d slots are taken after Forget, want 2", n)
		}
	})
}

// The set that Read returns is the caller's: what becomes of it does not change what is kept.
func TestAReadSetIsACopy(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	for range 3 {
		if slots, missing := b.begin("a").Take(limit.Wanted{Limit: "a", Most: 1}); missing != "" || slots[0].Number != 0 {
			t.Errorf("Take = %v, %q, want the slot 0, since none is written", slots, missing)
		}
	}
}

// A reserved slot is not given to another Taking, which is remembered to have found none; when it is released, it is free, or taken.
func TestReservedSlots(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	w := limit.Wanted{Limit: "a", Most: 2, Reserve: true}
	one, other := b.begin("a"), b.begin("a")
	mine, _ := one.Take(w)
	if slots, missing := other.Take(w); missing != "" || slots[0].Number != 1 {
		t.Errorf("Take = %v, %q, want the slot that is not reserved", slots, missing)
	}
	if other.Release() {
		t.Error("Release = true, and nobody found no free slot")
	}
	if slots, missing := other.Take(w); missing != "" || slots[0].Number != 1 {
		t.Errorf("Take = %v, %q, want the slot that was released", slots, missing)
	}
	if _, missing := b.begin("a").Take(w); missing != "a" {
		t.Errorf("Take = %q, want none free", missing)
	}
	b.Took(mine)
	if !one.Release() {
		t.Error("Release = false, and another found no free slot")
	}
	if one.Release() {
		t.Error("Release = true, and nothing was reserved any more")
	}
	other.Release()
	if slots, _ := b.begin("a").Take(w); slots[0].Number != 1 {
		t.Errorf("Take = %v, want the slot 1: the other is taken", slots)
	}
}

// What is stored does not change: keys and values of slots, and what a lease keeps of them.
func TestWhatIsStored(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		slot             limit.Slot
		key, value, kept string
	}{
		{limit.Slot{Limit: "key/k", Number: 0x1f, Holder: "t"}, "permit/key/k 0000001f", "t", `{"w":"key/k","n":31}`},
		{limit.Slot{Limit: "at/i", Holder: "t", Mark: "m"}, "permit/at/i 00000000", "t m", `{"w":"at/i","n":0}`},
		{limit.Slot{Limit: long, Holder: "t"}, "permit/" + store.Fit(long) + " 00000000", "t", `{"w":"` + long + `","n":0}`},
	} {
		op := c.slot.Take()
		kept, err := json.Marshal(c.slot)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{string(op.Item.Key.Table), op.Item.Key.Partition + " " + op.Item.Key.Sort, string(op.Item.Value), string(kept)}
		if diff := cmp.Diff([]string{string(store.Work), c.key, c.value, c.kept}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.slot.Limit[:5], diff)
		}
		if op.Item.Key != c.slot.GiveBack().Item.Key {
			t.Errorf("%v is taken and %v given back", op.Item.Key, c.slot.GiveBack().Item.Key)
		}
	}
}

// An item that is no slot is an error, and no slot that is free.
func TestADamagedSlotIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	key := store.Key{Table: store.Work, Partition: "permit/a", Sort: "x"}
	if err := b.write(store.Put(store.Item{Key: key, Version: 1}, store.Absent)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if set, err := b.Read(t.Context(), "a"); err == nil {
			t.Errorf("Read = %d slots, want an error", set.Count())
		}
	}
}
