package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/faulty"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/notifier/notifiertest"
)

func TestConformanceWithoutFaults(t *testing.T) {
	t.Parallel()
	notifiertest.Run(t, notifiertest.Capabilities{
		Open:    func(*testing.T) notifier.Line { return faulty.New(local.New(), 1, faulty.Faults{}, nil) },
		Virtual: true, Exact: true,
	})
}

func TestConformanceOfANotifierThatIsSlowAndRepeats(t *testing.T) {
	t.Parallel()
	slow := faulty.Faults{Double: 0.3, Late: 0.5, Delay: 10 * time.Second}
	notifiertest.Run(t, notifiertest.Capabilities{
		Open:    func(*testing.T) notifier.Line { return faulty.New(local.New(), 1, slow, nil) },
		Virtual: true,
	})
}

// heard sends notifications for 1,000 queues, and returns those received, with their times, and the number of calls that
// failed.
func heard(t *testing.T, seed uint64, faults faulty.Faults) (all []string, failed int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := faulty.New(local.New(), seed, faults, nil)
		defer b.Close()
		for n := range 1000 {
			if err := b.Notify(t.Context(), notifier.Notice{Queue: fmt.Sprint(n)}); errors.Is(err, notifier.ErrUnavailable) {
				failed++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*notifier.MaxDelay)
		defer cancel()
		for {
			notices, err := b.Receive(ctx, 1)
			if err != nil {
				return
			}
			all = append(all, fmt.Sprintf("%s after %v", notices[0].Queue, time.Since(start)))
		}
	})
	return all, failed
}

func TestARunIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	faults := faulty.Faults{Lose: 0.2, Double: 0.2, Late: 0.5, Delay: time.Hour, Fail: 0.1}
	first, failed := heard(t, 7, faults)
	again, failedAgain := heard(t, 7, faults)
	// Notifications of the same moment come in no order.
	slices.Sort(first)
	slices.Sort(again)
	if diff := cmp.Diff(first, again); diff != "" || failed != failedAgain {
		t.Errorf("second run (-first +second), failed %d and %d times:\n%s", failed, failedAgain, diff)
	}
	if other, _ := heard(t, 8, faults); len(other) == len(first) && cmp.Equal(first[:50], other[:50]) {
		t.Error("another seed gave the same run")
	}
}

func TestFaultsHappenAsOftenAsSaid(t *testing.T) {
	t.Parallel()
	about := func(what string, got, want int) {
		t.Helper()
		if got < want*8/10 || got > want*12/10 {
			t.Errorf("%s: %d, want about %d", what, got, want)
		}
	}
	all, _ := heard(t, 1, faulty.Faults{Lose: 0.2})
	about("notices heard of which a fifth is lost", len(all), 800)
	all, _ = heard(t, 1, faulty.Faults{Double: 0.5})
	about("notices heard of which each second comes again", len(all), 2000)
	all, failed := heard(t, 1, faulty.Faults{Fail: 0.3})
	about("calls that fail", failed, 300)
	about("notices of failing calls", len(all), 1000)
	all, _ = heard(t, 1, faulty.Faults{Late: 0.4, Delay: time.Minute})
	late := slices.DeleteFunc(all, func(s string) bool { return s[len(s)-8:] == "after 0s" })
	about("notices that are late", len(late), 400)
}
