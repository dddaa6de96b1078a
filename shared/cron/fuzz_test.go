package cron_test

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/cron"
)

// For any text: no panic; a refusal has a place and a reason; an accepted expression keeps its meaning as a string, and
// returns times in order, forward and backward.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"0/1 * 0 ? * * *", "0 0 12 L-3W,LW,15W,*/7 JAN-MAR ? 2024-2030/2", "0 0 0 ? * 2#1,FRIL,L,SAT-MON/2", "*/5 0-7 13,30-2 * 0,7",
		"@every 1d2h3m4s", "@daily", "59 59 23 29 2 ? 2099", "0 0 0 30 2 ?", " /5 /5 /5 * * ?\t",
	} {
		f.Add(text, int64(1_711_846_800), false)
		f.Add(text, int64(1_729_990_800), true)
	}
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string, at int64, quartz bool) {
		x, err := cron.Parse(text)
		if err != nil {
			var refused *cron.Error
			if !errors.As(err, &refused) || refused.Reason == "" || refused.Offset < 0 || refused.Offset > len(text) {
				t.Fatalf("Parse(%q) = %#v, want an Error with a place and a reason", text, err)
			}
			return
		}
		again, err := cron.Parse(x.String())
		if err != nil || *again != *x {
			t.Fatalf("Parse(%q) = %v, %v, want %v", x.String(), again, err, x)
		}
		saving := cron.Cron
		if quartz {
			saving = cron.Quartz
		}
		table := x.In(berlin, saving)
		_, _, _ = x.Describe(), x.FiresPerDay(), table.Warnings(time.Unix(1_700_000_000, 0))
		first, found := table.Next(time.Unix(at, 0))
		if !found {
			return
		}
		if second, found := table.Next(first); found {
			if back, found := table.Previous(second); !found || !back.Equal(first) || !second.After(first) {
				t.Fatalf("%q: Next = %v, then %v, of which Previous = %v", text, first, second, back)
			}
		}
	})
}

// The searches that examine the most months and the most changes of the clock take less than a millisecond.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		expression string
		saving     cron.Saving
	}{
		{"0 0 0 30 2 ?", cron.Cron},                    // never
		{"0 0 0 ? 2 1#5", cron.Cron},                   // every 28 years
		{"0 0 0 29 2 ? 1999-2099", cron.Cron},          // few
		{"0 30 2 ? 3 1L", cron.Quartz},                 // skipped in each year
		{"0 30 2 * * ?", cron.Quartz},                  // skipped once a year
		{"59 59 23 31 12 ? 2099", cron.Cron},           // far away
		{"0 0 0 31W 2,4,6,9,11 ?", cron.Quartz},        // never, by other means
		{"0 30 2 L-6,L-5,L-4 3 ? 1980/7", cron.Quartz}, // some are skipped
	} {
		for _, name := range []string{"UTC", "Europe/Berlin", "Africa/Casablanca"} {
			table := parse(t, test.expression).In(zone(t, name), test.saving)
			fastest := time.Hour
			for range 20 { // other processes use this machine too
				began := time.Now()
				_, _ = table.Next(time.Unix(0, 0))
				_, _ = table.Previous(time.Unix(4_200_000_000, 0))
				fastest = min(fastest, time.Since(began)/2)
			}
			t.Logf("%s in %s: %v", test.expression, name, fastest)
			if limit := time.Millisecond; fastest > limit && !raced {
				t.Errorf("%s in %s: a search takes %v, want less than %v", test.expression, name, fastest, limit)
			}
		}
	}
}
