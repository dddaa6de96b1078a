package cron_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/cron"
)

// What the ends of daylight saving do to timetables, within a year.
func TestShifts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		zone, expression string
		saving           cron.Saving
		want             []string
	}{
		{"Europe/Berlin", "0 30 2 * * ?", cron.Cron, []string{"31 Mar 02:30 repeats false: 03:00 +0200", "27 Oct 02:30 repeats true: 02:30 +0200"}},
		{"Europe/Berlin", "0 30 2 * * ?", cron.Quartz, []string{"31 Mar 02:30 repeats false:", "27 Oct 02:30 repeats true: 02:30 +0100"}},
		{"Europe/Berlin", "0 15 * * * ?", cron.Cron, []string{"31 Mar 02:15 repeats false:", "27 Oct 02:15 repeats true: 02:15 +0200 02:15 +0100"}},
		{"Europe/Berlin", "0 0 3 * * ?", cron.Cron, nil},
		{"Europe/Berlin", "@every 30s", cron.Cron, nil},
		{"UTC", "0 30 2 * * ?", cron.Cron, nil},
		{"America/New_York", "0 30 1 ? * SUN", cron.Cron, []string{"03 Nov 01:30 repeats true: 01:30 -0400"}},
	} {
		x, err := cron.Parse(test.expression)
		if err != nil {
			t.Fatal(err)
		}
		zone, err := cron.Zone(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, s := range x.In(zone, test.saving).Shifts(from, from.AddDate(1, 0, 0)) {
			text := fmt.Sprintf("%s %s repeats %v:", s.At.Format("02 Jan"), s.Local.Format("15:04"), s.Repeats)
			for _, at := range s.Fires {
				text += at.Format(" 15:04 -0700")
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s in %s, %s (-want +got):\n%s", test.expression, test.zone, test.saving, diff)
		}
	}
}
