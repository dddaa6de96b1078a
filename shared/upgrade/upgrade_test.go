package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/upgrade"
)

// shared is a store that other processes use too.
type shared struct {
	store.Store
	then func(store.Op) error // called instead of a write, if it is set
}

func (shared) Exclusive() bool { return false }

// Write calls then first, which may refuse.
func (s shared) Write(ctx context.Context, w store.Write) error {
	if s.then != nil {
		if err := s.then(w.Ops[0]); err != nil {
			return err
		}
	}
	return s.Store.Write(ctx, w)
}

func says(t *testing.T, s store.Store, value string) {
	t.Helper()
	var of struct{ Layout int64 }
	_ = json.Unmarshal([]byte(value), &of)
	item := store.Item{Key: store.Key{Table: store.Journal, Partition: "layout", Sort: "0"}, Version: max(of.Layout, 1), Value: []byte(value)}
	if err := s.Write(t.Context(), store.Write{Token: "t", Ops: []store.Op{store.Put(item, store.Absent)}}); err != nil {
		t.Fatal(err)
	}
}

func begun(t *testing.T, s store.Store) {
	t.Helper()
	j := journal.Open(s, journal.Options{})
	defer j.Close()
	e := event.Event{Type: "OrderFinished", Key: event.Key{Path: "/a"}}
	if _, err := j.Emit(t.Context(), []event.Event{e}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestAProgramRefusesAStoreOfAnotherLayout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare   func(*testing.T, store.Store)
		exclusive bool
		want      error
		text      string
	}{
		"new":                           {prepare: func(*testing.T, store.Store) {}},
		"this":                          {prepare: func(t *testing.T, s store.Store) { says(t, s, `{"layout":3,"since":"0.3.0"}`) }},
		"the one before":                {prepare: func(t *testing.T, s store.Store) { says(t, s, `{"layout":2,"since":"0.2.0"}`) }},
		"the first":                     {prepare: func(t *testing.T, s store.Store) { says(t, s, `{"layout":1,"since":"0.1.0"}`) }},
		"newer":                         {func(t *testing.T, s store.Store) { says(t, s, `{"layout":4,"since":"0.9.0"}`) }, false, upgrade.ErrNewer, "start Millrace 0.9.0 or a later one"},
		"newer, with more":              {func(t *testing.T, s store.Store) { says(t, s, `{"layout":5,"since":"2","more":1}`) }, true, upgrade.ErrNewer, "layout is 5"},
		"without a version":             {begun, false, upgrade.ErrOlder, "before 0.1.0"},
		"without a version, of its own": {begun, true, nil, ""},
		"not readable":                  {func(t *testing.T, s store.Store) { says(t, s, "x") }, true, store.ErrDamaged, `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s store.Store = memory.New(memory.Options{})
			if !test.exclusive {
				s = shared{Store: s}
			}
			test.prepare(t, s)
			for range 2 { // a refusal changes nothing
				if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); !errors.Is(err, test.want) || test.want != nil && !strings.Contains(err.Error(), test.text) {
					t.Errorf("Check = %v, want %v with %q", err, test.want, test.text)
				}
			}
		})
	}
}

// A process that begins a store at the same time as another follows what that has noted, also if it has appended since.
func TestTwoProcessesBeginAStoreAtOnce(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]error{`{"layout":3,"since":"0.3.0"}`: nil, `{"layout":4,"since":"0.9.0"}`: upgrade.ErrNewer} {
		base := memory.New(memory.Options{})
		s := shared{Store: base, then: func(store.Op) error {
			says(t, base, value)
			begun(t, base)
			return nil
		}}
		if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); !errors.Is(err, want) {
			t.Errorf("beside %s: Check = %v, want %v", value, err, want)
		}
	}
}

func TestWhoMayNotWriteLeavesTheVersionToOthers(t *testing.T) {
	t.Parallel()
	s := shared{Store: memory.New(memory.Options{}), then: func(store.Op) error { return store.ErrDenied }}
	if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); err != nil {
		t.Errorf("Check = %v", err)
	}
	s.then = func(store.Op) error { return fmt.Errorf("%w: for another reason", store.ErrUnavailable) }
	if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Check = %v, want %v", err, store.ErrUnavailable)
	}
}

// A start costs one read; what it costs in a new store is paid once.
func TestAStartCostsOneRead(t *testing.T) {
	t.Parallel()
	m := meter.New(memory.New(memory.Options{}))
	for i, want := range []meter.Usage{
		{Get: meter.Cost{Calls: 2, RCU: 2}, Sequence: meter.Cost{Calls: 1, RCU: 1}, Write: meter.Cost{Calls: 1, WCU: 1}},
		{Get: meter.Cost{Calls: 1, RCU: 1}},
	} {
		m.Reset()
		if _, err := upgrade.Check(t.Context(), m, journal.ShortRun); err != nil {
			t.Fatal(err)
		}
		if got := m.Usage(); got != want {
			t.Errorf("start %d costs %+v, want %+v", i+1, got, want)
		}
	}
}

// A store of an older layout has this program's layout from its first start on, which older programs refuse, also where two begin at once.
func TestAStoreOfTheLayoutBeforeGetsThisOne(t *testing.T) {
	t.Parallel()
	base := memory.New(memory.Options{})
	says(t, base, `{"layout":1,"since":"0.1.0"}`)
	first := true
	s := shared{Store: base, then: func(store.Op) error {
		if !first {
			return nil
		}
		first = false
		_, err := upgrade.Check(t.Context(), base, journal.ShortRun) // another process is quicker
		return err
	}}
	if _, err := upgrade.Check(t.Context(), s, journal.ShortRun); err != nil {
		t.Errorf("Check = %v", err)
	}
	items, err := base.Get(t.Context(), store.Key{Table: store.Journal, Partition: "layout", Sort: "0"})
	if want := `{"layout":3,"since":"0.3.0"}`; err != nil || string(items[0].Value) != want {
		t.Errorf("the store says %s, %v, want %s", items[0].Value, err, want)
	}
}

// A process that begins a store while another does goes by the runs that the store says, also if the other is of the release before and a
// third has upgraded it meanwhile, and if it may not write.
func TestAProcessGoesByTheRunsOfTheStore(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*testing.T, store.Store) error{
		"another begins": func(t *testing.T, s store.Store) error {
			_, err := upgrade.Check(t.Context(), s, journal.PageRun)
			return err
		},
		"an upgrade": func(t *testing.T, s store.Store) error {
			says(t, s, `{"layout":2,"since":"0.2.0"}`)
			_, err := upgrade.Check(t.Context(), s, journal.ShortRun)
			return err
		},
		"another begins, and it may not": func(t *testing.T, s store.Store) error {
			_, err := upgrade.Check(t.Context(), s, journal.PageRun)
			return errors.Join(err, store.ErrDenied)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, done := shared{Store: memory.New(memory.Options{})}, false
			s := shared{Store: base, then: func(store.Op) error {
				if done {
					return nil
				}
				done = true
				return meanwhile(t, base)
			}}
			run, err := upgrade.Check(t.Context(), s, journal.ShortRun)
			if err != nil {
				t.Fatal(err)
			}
			if said, err := upgrade.Check(t.Context(), base, journal.ShortRun); err != nil || run != said {
				t.Errorf("the process goes by runs of %d, the others by runs of %d, %v", run, said, err)
			}
		})
	}
}
