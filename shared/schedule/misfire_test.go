package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store"
)

// shared is a store that other processes reach too.
type shared struct{ store.Store }

// Exclusive returns false.
func (shared) Exclusive() bool { return false }

// aheadOf is how far ahead of the time ticks are made, by whether the process has the store to itself.
var aheadOf = map[bool]time.Duration{true: 3 * time.Second, false: schedule.Ahead}

// A process that starts after another was down makes the ticks that are on time, and of the late ones those that the policy says:
// none, the newest, or all up to the bound. A tick is on time if it is overdue by one look at most.
func TestMisfire(t *testing.T) {
	t.Parallel()
	const skip, once, all = schedule.MisfireSkip, schedule.MisfireOnce, schedule.MisfireAll
	for _, test := range []struct {
		alone  bool
		down   time.Duration // from 12:00:00 on, with a tick each ten seconds
		onTime int
		late   int
	}{
		{true, 12 * time.Second, 1, 0},
		{true, 14 * time.Second, 0, 1},
		{true, 65 * time.Second, 0, 6},
		{true, 4*time.Minute + 5*time.Second, 0, 24},
		{true, 3 * time.Hour, 1, 1079},
		{true, 14 * 24 * time.Hour, 1, 14*24*360 - 1},
		{false, 75 * time.Second, 0, 0},
		{false, 2*time.Minute + 5*time.Second, 5, 0},
		{false, 4*time.Minute + 5*time.Second, 6, 11},
		{false, 14*24*time.Hour + 5*time.Second, 6, 14*24*360 - 6 - 7},
	} {
		for policy, madeUp := range map[string]int{
			skip: 0, once: min(test.late, 1), "": min(test.late, 1), all: min(test.late, schedule.MaxMisfires),
		} {
			t.Run(fmt.Sprintf("alone %v, down %v, misfire %s", test.alone, test.down, policy), func(t *testing.T) {
				t.Parallel()
				b := setup(t, every("s", "0/10 * * * * ?", func(s *definition.Schedule) { s.Misfire = policy }))
				if !test.alone {
					b.store = shared{b.store}
				}
				ahead := aheadOf[test.alone]
				if _, err := b.open(b.clock).Make(t.Context(), b.now.Add(ahead)); err != nil {
					t.Fatal(err)
				}
				before := len(b.ticks(job))
				b.now = b.now.Add(test.down)
				if _, err := b.open(b.clock).Make(t.Context(), b.now.Add(ahead)); err != nil {
					t.Fatal(err)
				}
				got := -before
				for _, tick := range b.ticks(job) {
					if tick.ID.Time() <= b.now.UnixMicro() {
						got++
					}
				}
				if want := test.onTime + madeUp; got != want {
					t.Errorf("%d ticks of the past, want %d that are on time and %d that are made up for", got, test.onTime, madeUp)
				}
				missed := strings.Contains(strings.Join(b.events("s"), ";"), "ScheduleMissed ")
				if missed != (test.late > 0) {
					t.Errorf("told that ticks were missed: %v, with %d late", missed, test.late)
				}
			})
		}
	}
}

// What fell due while a running process was delayed is on time, if that was for a minute at most; otherwise it is late.
func TestWhatAProcessKnewOfIsOnTime(t *testing.T) {
	t.Parallel()
	for stall, want := range map[time.Duration]int{20 * time.Second: 20, 55 * time.Second: 55, 65 * time.Second: 3} {
		t.Run(stall.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t, every("s", "* * * * * ?", func(s *definition.Schedule) { s.Misfire = schedule.MisfireSkip }))
			for _, pause := range []time.Duration{500 * time.Millisecond, stall} {
				if _, err := b.Make(t.Context(), b.now); err != nil {
					t.Fatal(err)
				}
				b.now = b.now.Add(pause)
			}
			if _, err := b.Make(t.Context(), b.now); err != nil {
				t.Fatal(err)
			}
			if got := len(b.ticks(job)); got != want {
				t.Errorf("%d ticks, want %d", got, want)
			}
		})
	}
}
