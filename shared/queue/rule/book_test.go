package rule_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// books returns two Books of one store, of which the first has read the rules before.
func books(t *testing.T, alone bool) (first, second *rule.Book) {
	t.Helper()
	s, now, tokens := memory.New(memory.Options{}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	clock := func() time.Time { return now }
	j := journal.Open(s, journal.Options{Now: clock, Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	apply := func(ctx context.Context, ops ...store.Op) error {
		tokens++
		return s.Write(ctx, store.Write{Token: fmt.Sprint("t", tokens), Ops: ops})
	}
	o := rule.Options{Store: s, Journal: j, Now: clock, Apply: apply, Alone: alone}
	first, second = rule.New(o), rule.New(o)
	inForce(t, first)
	return first, second
}

func inForce(t *testing.T, b *rule.Book) *rule.Set {
	t.Helper()
	set, err := b.InForce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A job is held while it has a rule, and lifted says that the last one is gone.
func TestTheLastRuleThatGoesLiftsTheHold(t *testing.T) {
	t.Parallel()
	b, _ := books(t, true)
	for _, step := range []struct {
		kind          rule.Kind
		on            bool
		lifted, holds bool
	}{
		{rule.Pause, true, false, true},
		{rule.Pause, true, false, true}, // idempotent
		{rule.Block, true, false, true},
		{rule.Pause, false, false, true},
		{rule.Block, false, true, false},
		{rule.Block, false, false, false},
	} {
		lifted, err := b.SetRule(t.Context(), "/job", step.kind, step.on)
		if err != nil || lifted != step.lifted || inForce(t, b).Holds("/job") != step.holds {
			t.Errorf("%s %t: lifted %t, %v; want %+v", step.kind, step.on, lifted, err, step)
		}
	}
}

// One process of many reads what others have written; a process alone reads once, until it forgets.
func TestOnlyAProcessAloneKeepsTheRules(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		b, other := books(t, alone)
		if changed, err := other.Suspend(t.Context(), "main", true); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if _, known := inForce(t, b).Suspended["main"]; known == alone {
			t.Errorf("alone %t: it knows of the suspended queue: %t", alone, known)
		}
		b.Forget()
		if _, known := inForce(t, b).Suspended["main"]; !known {
			t.Errorf("alone %t: it does not know of the suspended queue", alone)
		}
	}
}

// Markers of lines are no rules of jobs.
func TestMarkersOfLinesAreApart(t *testing.T) {
	t.Parallel()
	b, _ := books(t, true)
	l := layout.Line{Queue: "main", Job: "/job", Name: "Anna"}
	if err := b.Keep(t.Context(), l, 7); err != nil {
		t.Fatal(err)
	}
	set := inForce(t, b)
	if set.Kept[l] != 7 || len(set.Matching("")) != 0 || len(set.Suspended) != 0 {
		t.Errorf("the rules are %+v, want only the marker", set)
	}
}

// slow is a store whose first query waits until it is let on.
type slow struct {
	store.Store
	queries atomic.Int64
	on      chan struct{}
}

func (s *slow) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := s.Store.Query(ctx, r)
	if s.queries.Add(1) == 1 {
		<-s.on
	}
	return page, err
}

// Callers that come while the rules are read share the next read, which knows what was changed before they came.
func TestCallersShareTheNextRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := memory.New(memory.Options{Shared: true})
		s := &slow{Store: base, on: make(chan struct{})}
		j := journal.Open(base, journal.Options{Folds: projection.Folds()})
		defer func() { _ = j.Close() }()
		reads := rule.New(rule.Options{Store: s, Journal: j, Now: time.Now})
		other := rule.New(rule.Options{Store: base, Journal: j, Now: time.Now})
		holds := make(chan bool, 10)
		ask := func() {
			go func() { holds <- inForce(t, reads).Holds("/job") }()
			synctest.Wait()
		}
		ask()
		if _, err := other.SetRule(t.Context(), "/job", rule.Pause, true); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			ask()
		}
		close(s.on)
		synctest.Wait()
		if <-holds {
			t.Error("a read that began before the pause knows of it")
		}
		for range 5 {
			if !<-holds {
				t.Error("a caller that came after the pause does not know of it")
			}
		}
		if n := s.queries.Load(); n != 2 {
			t.Errorf("%d reads for six callers of whom five came while one read, want 2", n)
		}
	})
}
