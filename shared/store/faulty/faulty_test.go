package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
)

const always = 1.0

func key(sort string) store.Key {
	return store.Key{Table: store.Work, Partition: "p", Sort: sort}
}

func put(token, sort string, version int64, cond store.Condition) store.Write {
	return store.Write{Token: token, Ops: []store.Op{
		store.Put(store.Item{Key: key(sort), Version: version, Value: []byte(token)}, cond),
	}}
}

// under runs f with a store behind faults, and the store itself.
func under(t *testing.T, faults faulty.Faults, f func(t *testing.T, s *faulty.Store, base store.Store)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := memory.New(memory.Options{})
		f(t, faulty.NewService(base, faults, nil).Process("test"), base)
	})
}

// held returns the value of a key, empty for none.
func held(t *testing.T, s store.Store, sort string) string {
	t.Helper()
	items, err := s.Get(t.Context(), key(sort))
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if items[0] == nil {
		return ""
	}
	return string(items[0].Value)
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestWithoutFaultsNothingIsInTheWay(t *testing.T) {
	under(t, faulty.Faults{}, func(t *testing.T, s *faulty.Store, base store.Store) {
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), nil)
		if got := held(t, base, "1"); got != "a" {
			t.Errorf("base holds %q, want a", got)
		}
		err := s.Write(t.Context(), put("b", "1", 1, store.Absent))
		if conflict := store.AsConflict(err); conflict == nil || string(conflict.Failed[0].Found.Value) != "a" {
			t.Errorf("Write of a second = %v, want a conflict with a", err)
		}
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, advances := range []bool{false, true} {
		t.Run(fmt.Sprintf("advances=%v", advances), func(t *testing.T) {
			open := func(*testing.T) store.Store {
				return faulty.New(memory.New(memory.Options{Advances: advances}), faulty.Faults{Twice: 0.2})
			}
			storetest.Run(t, open, storetest.Capabilities{Exclusive: true, Advances: advances})
		})
	}
}

func TestLostRequestIsNeverApplied(t *testing.T) {
	under(t, faulty.Faults{LoseRequest: always, Timeout: time.Second}, func(t *testing.T, s *faulty.Store, base store.Store) {
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), store.ErrUnknown)
		_, err := s.Reserve(t.Context(), key("seq"), 1, 1)
		wantError(t, "Reserve", err, store.ErrUnavailable)
		time.Sleep(time.Hour)
		if got := held(t, base, "1"); got != "" {
			t.Errorf("base holds %q, want nothing", got)
		}
	})
}

func TestLostAnswerIsUnknownAndMayBeSentAgain(t *testing.T) {
	faults := faulty.Faults{LoseAnswer: always, Timeout: time.Second}
	under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
		w := put("a", "1", 1, store.Absent)
		wantError(t, "Write", s.Write(t.Context(), w), store.ErrUnknown)
		if got := held(t, base, "1"); got != "a" {
			t.Errorf("base holds %q, want a", got)
		}
		s.Settle()
		wantError(t, "the same Write again", s.Write(t.Context(), w), nil)
	})
}

func TestRequestLandsAfterItsCallerGaveUp(t *testing.T) {
	faults := faulty.Faults{There: faulty.Spread{Min: time.Minute, Max: time.Minute}, Timeout: time.Second}
	under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), store.ErrUnknown)
		if got := held(t, base, "1"); got != "" {
			t.Errorf("base holds %q before the request can have landed", got)
		}
		time.Sleep(time.Hour)
		if got := held(t, base, "1"); got != "a" {
			t.Errorf("base holds %q an hour later, want a", got)
		}
	})
}

func TestEndOfContextLeavesTheRequestUnderWay(t *testing.T) {
	faults := faulty.Faults{There: faulty.Spread{Min: time.Minute, Max: time.Minute}}
	under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Write(ctx, put("a", "1", 1, store.Absent))
		wantError(t, "Write", err, store.ErrUnknown)
		wantError(t, "Write", err, context.DeadlineExceeded)
		wantError(t, "Write after the end", s.Write(ctx, put("b", "2", 1, store.Absent)), context.DeadlineExceeded)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"a", ""}, []string{held(t, base, "1"), held(t, base, "2")}); diff != "" {
			t.Errorf("base holds (-want +got):\n%s", diff)
		}
	})
}

func TestSignatureExpires(t *testing.T) {
	faults := faulty.Faults{
		There: faulty.Spread{Min: time.Hour, Max: time.Hour}, SignatureLife: 15 * time.Minute,
	}
	under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), store.ErrUnavailable)
		if got := held(t, base, "1"); got != "" {
			t.Errorf("base holds %q, want nothing", got)
		}
	})
}

func TestNotAfterIsCheckedBeforeSigningOnly(t *testing.T) {
	frozen := faulty.Spread{Min: time.Minute, Max: time.Minute}
	t.Run("frozen before signing", func(t *testing.T) {
		under(t, faulty.Faults{Freeze: always, Frozen: frozen}, func(t *testing.T, s *faulty.Store, _ store.Store) {
			w := put("a", "1", 1, store.Absent)
			w.NotAfter = time.Now().Add(time.Second)
			wantError(t, "Write", s.Write(t.Context(), w), store.ErrTooLate)
		})
	})
	t.Run("frozen on the wire", func(t *testing.T) {
		under(t, faulty.Faults{FreezeOnWire: always, Frozen: frozen}, func(t *testing.T, s *faulty.Store, base store.Store) {
			w := put("a", "1", 1, store.Absent)
			w.NotAfter = time.Now().Add(time.Second)
			wantError(t, "Write", s.Write(t.Context(), w), nil)
			if got := held(t, base, "1"); got != "a" {
				t.Errorf("base holds %q, want a", got)
			}
		})
	})
}

func TestFrozenProcessStandsStillAsAWhole(t *testing.T) {
	under(t, faulty.Faults{}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		s.Freeze(time.Minute)
		began := time.Now()
		_ = held(t, s, "1")
		if took := time.Since(began); took < time.Minute {
			t.Errorf("a call of a frozen process took %v, want a minute at least", took)
		}
	})
}

func TestBusyAndUnavailableApplyNothing(t *testing.T) {
	for want, faults := range map[error]faulty.Faults{
		store.ErrBusy:        {Busy: always},
		store.ErrUnavailable: {Unavailable: always},
	} {
		t.Run(want.Error(), func(t *testing.T) {
			under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
				wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), want)
				time.Sleep(time.Hour)
				if got := held(t, base, "1"); got != "" {
					t.Errorf("base holds %q, want nothing", got)
				}
			})
		})
	}
}

func TestTwiceIsSeenOnceByItsCaller(t *testing.T) {
	under(t, faulty.Faults{Twice: always, Waste: always}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), nil)
		wantError(t, "Write", s.Write(t.Context(), put("b", "1", 2, store.VersionIs(1))), nil)
		ticket, err := s.Reserve(t.Context(), key("seq"), 1, 1)
		if err != nil || ticket.Position != 2 {
			t.Errorf("Reserve applied twice = %+v, %v, want position 2", ticket, err)
		}
	})
}

func TestEchoIsHarmlessToConditions(t *testing.T) {
	faults := faulty.Faults{Echo: always, EchoWithin: time.Minute}
	under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), nil)
		wantError(t, "Delete", base.Write(t.Context(), store.Write{
			Token: "d", Ops: []store.Op{store.Delete(key("1"), store.Always)},
		}), nil)
		time.Sleep(time.Hour)
		if got := held(t, base, "1"); got != "a" {
			t.Errorf("base holds %q, want the echo of a, for whose condition the way was free again", got)
		}
	})
}

func TestEventualReadsLagEachItemOnItsOwn(t *testing.T) {
	under(t, faulty.Faults{Seed: 1, Lag: time.Minute}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		for n := range 40 {
			wantError(t, "Write", s.Write(t.Context(), put("a", fmt.Sprintf("%02d", n), 1, store.Absent)), nil)
		}
		time.Sleep(30 * time.Second)
		r := store.Range{Table: store.Work, Partition: "p", Eventual: true}
		seen := map[int]bool{}
		for range 5 {
			page, err := s.Query(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			seen[len(page.Items)] = true
			if len(page.Items) == 0 || len(page.Items) == 40 {
				t.Errorf("an eventual read saw %d items of 40, want some", len(page.Items))
			}
		}
		if len(seen) < 2 {
			t.Errorf("five eventual reads all saw equally much: %v", seen)
		}
		r.Eventual = false
		if page, err := s.Query(t.Context(), r); err != nil || len(page.Items) != 40 {
			t.Errorf("a strong read saw %d items, %v, want 40", len(page.Items), err)
		}
		time.Sleep(time.Minute)
		r.Eventual = true
		if page, err := s.Query(t.Context(), r); err != nil || len(page.Items) != 40 {
			t.Errorf("an eventual read after the lag saw %d items, %v, want 40", len(page.Items), err)
		}
	})
}

func TestEventualReadsKeepOrderAndLimit(t *testing.T) {
	under(t, faulty.Faults{Seed: 2, Lag: time.Minute}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		for n := range 20 {
			wantError(t, "Write", s.Write(t.Context(), put("a", fmt.Sprintf("%02d", n), 1, store.Absent)), nil)
			wantError(t, "Write", s.Write(t.Context(), put("b", fmt.Sprintf("%02d", n), 2, store.VersionIs(1))), nil)
			time.Sleep(3 * time.Second)
		}
		for _, backward := range []bool{false, true} {
			r := store.Range{Table: store.Work, Partition: "p", Eventual: true, Backward: backward, Limit: 5}
			page, err := s.Query(t.Context(), r)
			if err != nil || len(page.Items) > 5 || !page.More {
				t.Fatalf("Query = %d items, more %v, %v", len(page.Items), page.More, err)
			}
			for i := 1; i < len(page.Items); i++ {
				if a, b := page.Items[i-1].Key.Sort, page.Items[i].Key.Sort; a < b == backward {
					t.Errorf("backward %v: %s stands before %s", backward, a, b)
				}
			}
		}
	})
}

func TestEventualReadsOfASequencerLag(t *testing.T) {
	under(t, faulty.Faults{Seed: 3, Lag: time.Minute}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		for range 30 {
			if _, err := s.Reserve(t.Context(), key("seq"), 1, 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		seq, err := s.Sequence(t.Context(), key("seq"), false)
		if err != nil || seq.Position != 30 {
			t.Errorf("a strong read = %+v, %v, want position 30", seq, err)
		}
		behind := 0
		for range 10 {
			seq, err := s.Sequence(t.Context(), key("seq"), true)
			if err != nil {
				t.Fatal(err)
			}
			if seq.Position < 30 {
				behind++
			}
		}
		if behind == 0 {
			t.Error("none of ten eventual reads was behind")
		}
	})
}

func TestItemsOfOneWriteAppearApart(t *testing.T) {
	under(t, faulty.Faults{Seed: 5, Apart: time.Minute}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		both := put("a", "1", 1, store.Absent)
		both.Ops = append(both.Ops, put("a", "2", 1, store.Absent).Ops...)
		answered := make(chan error, 1)
		go func() { answered <- s.Write(t.Context(), both) }()
		apart, busy := false, false
		for len(answered) == 0 {
			time.Sleep(time.Second)
			one, two := held(t, s, "1"), held(t, s, "2")
			apart = apart || (one == "") != (two == "")
			busy = busy || errors.Is(s.Write(t.Context(), put("b", "1", 2, store.VersionIs(1))), store.ErrBusy)
		}
		wantError(t, "Write", <-answered, nil)
		if !apart || !busy {
			t.Errorf("seen apart: %v; others were turned away meanwhile: %v; want both", apart, busy)
		}
		if one, two := held(t, s, "1"), held(t, s, "2"); one == "" || two == "" {
			t.Errorf("after the answer the items are %q and %q", one, two)
		}
	})
}

func TestCrashEndsCallsButNotRequestsUnderWay(t *testing.T) {
	faults := faulty.Faults{There: faulty.Spread{Min: time.Minute, Max: time.Minute}}
	under(t, faults, func(t *testing.T, s *faulty.Store, base store.Store) {
		time.AfterFunc(time.Second, s.Crash)
		wantError(t, "Write", s.Write(t.Context(), put("a", "1", 1, store.Absent)), faulty.ErrCrashed)
		wantError(t, "Write after the crash", s.Write(t.Context(), put("b", "2", 1, store.Absent)), faulty.ErrCrashed)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"a", ""}, []string{held(t, base, "1"), held(t, base, "2")}); diff != "" {
			t.Errorf("base holds (-want +got):\n%s", diff)
		}
	})
}

func TestTicketCountsFromSending(t *testing.T) {
	faults := faulty.Faults{There: faulty.Spread{Min: time.Minute, Max: time.Minute}}
	under(t, faults, func(t *testing.T, s *faulty.Store, _ store.Store) {
		sent := time.Now()
		ticket, err := s.Reserve(t.Context(), key("seq"), 1, 1)
		if err != nil || !ticket.Sent.Equal(sent) {
			t.Errorf("Reserve = sent %v, %v, want %v", ticket.Sent, err, sent)
		}
	})
}

func TestSameSeedIsSameLuck(t *testing.T) {
	t.Parallel()
	luck := func(t *testing.T, seed uint64) (told []string) {
		synctest.Test(t, func(t *testing.T) {
			faults := faulty.Faults{
				Seed: seed, LoseAnswer: 0.3, Busy: 0.3, Timeout: time.Second, There: faulty.Spread{Max: time.Minute},
			}
			s := faulty.NewService(memory.New(memory.Options{}), faults, nil).Process("test")
			began := time.Now()
			for n := range 50 {
				err := s.Write(t.Context(), put("a", fmt.Sprint(n), 1, store.Absent))
				told = append(told, fmt.Sprint(time.Since(began), err))
			}
		})
		return told
	}
	if diff := cmp.Diff(luck(t, 1), luck(t, 1)); diff != "" {
		t.Errorf("seed 1 twice (-first +second):\n%s", diff)
	}
	if cmp.Equal(luck(t, 1), luck(t, 2)) {
		t.Error("seeds 1 and 2 have the same luck")
	}
}

func TestCloseEndsTheLine(t *testing.T) {
	t.Parallel()
	base := memory.New(memory.Options{})
	s := faulty.New(base, faulty.Faults{})
	wantError(t, "Close", s.Close(), nil)
	wantError(t, "Ping after Close", s.Ping(t.Context()), store.ErrClosed)
	wantError(t, "Ping of the base", base.Ping(t.Context()), store.ErrClosed)
	wantError(t, "Close again", s.Close(), nil)
}

// A call of any method may return ErrBusy, and has done nothing then.
func TestCallsOfEveryKindMayBeBusy(t *testing.T) {
	t.Parallel()
	in := store.Range{Table: store.Work, Partition: "p"}
	calls := map[string]func(s *faulty.Store, t *testing.T) error{
		"Get":   func(s *faulty.Store, t *testing.T) error { _, err := s.Get(t.Context(), key("1")); return err },
		"Query": func(s *faulty.Store, t *testing.T) error { _, err := s.Query(t.Context(), in); return err },
		"Write of one": func(s *faulty.Store, t *testing.T) error {
			return s.Write(t.Context(), put("a", "1", 1, store.Always))
		},
		"Write of several": func(s *faulty.Store, t *testing.T) error {
			w := put("a", "1", 1, store.Always)
			w.Ops = append(w.Ops, put("a", "2", 1, store.Always).Ops...)
			return s.Write(t.Context(), w)
		},
		"Remove": func(s *faulty.Store, t *testing.T) error { return s.Remove(t.Context(), in) },
		"Reserve": func(s *faulty.Store, t *testing.T) error {
			_, err := s.Reserve(t.Context(), key("q"), 1, 1)
			return err
		},
		"Sequence": func(s *faulty.Store, t *testing.T) error {
			_, err := s.Sequence(t.Context(), key("q"), true)
			return err
		},
		"Raise": func(s *faulty.Store, t *testing.T) error { return s.Raise(t.Context(), key("q"), 1, 1) },
		"Date":  func(s *faulty.Store, t *testing.T) error { _, err := s.Date(t.Context()); return err },
	}
	for name, ask := range calls {
		t.Run(name, func(t *testing.T) {
			under(t, faulty.Faults{BusyAt: 1}, func(t *testing.T, s *faulty.Store, base store.Store) {
				wantError(t, "the first", base.Write(t.Context(), put("before", "1", 1, store.Absent)), nil)
				wantError(t, "the call", ask(s, t), store.ErrBusy)
				if got := held(t, base, "1"); got != "before" {
					t.Errorf("base holds %q, want what was there before", got)
				}
				if ticket, err := base.Sequence(t.Context(), key("q"), false); err != nil || ticket != (store.Sequence{}) {
					t.Errorf("the sequencer is at %+v, %v, want untouched", ticket, err)
				}
				wantError(t, "the same call again", ask(s, t), nil)
				if n := s.Calls(); n != 2 {
					t.Errorf("%d calls, want 2", n)
				}
			})
		})
	}
}

func TestAConflictThatIsUntoldBringsNoItem(t *testing.T) {
	under(t, faulty.Faults{Untold: true}, func(t *testing.T, s *faulty.Store, _ store.Store) {
		w := put("a", "1", 1, store.Absent)
		wantError(t, "Write", s.Write(t.Context(), w), nil)
		for what, again := range map[string]store.Write{
			"the same Write again": w, "another": put("b", "1", 1, store.Absent), "one of a newer": put("c", "1", 3, store.VersionIs(2)),
		} {
			conflict := store.AsConflict(s.Write(t.Context(), again))
			if conflict == nil || len(conflict.Failed) != 1 || conflict.Failed[0].Found != nil {
				t.Errorf("%s: %v, want a conflict that does not tell", what, conflict)
			}
		}
		wantError(t, "Write under what holds", s.Write(t.Context(), put("d", "1", 2, store.VersionIs(1))), nil)
	})
}
