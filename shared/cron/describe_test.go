package cron_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/cron"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"0 0 12 * * ?":          "At 12:00 every day",
		"5 30 9,18 * * ?":       "At 09:30:05 and 18:30:05 every day",
		"0 0 */6 * * ?":         "At 00:00, 06:00, 12:00 and 18:00 every day",
		"0 0 */2 * * ?":         "Every 2 hours",
		"0/1 * 0 ? * * *":       "Every second of hour 0 every day",
		"* * * * * ?":           "Every second",
		"0 * * * * ?":           "Every minute",
		"@hourly":               "Every hour",
		"30 * * * * ?":          "At second 30 of every minute",
		"*/10 * * * * ?":        "Every 10 seconds",
		"5/10 * * * * ?":        "Every 10 seconds from second 5 on",
		"*/7 * * * * ?":         "Every 7 seconds from second 0 on",
		"*/10 5 * * * ?":        "Every 10 seconds of minute 5 of every hour",
		"0 0/5 * ? * * *":       "Every 5 minutes",
		"0 0/5 9-17 * * ?":      "Every 5 minutes of hours 9 to 17 every day",
		"0 0,30 * * * ?":        "At minutes 0 and 30 of every hour",
		"0 30 9-17 * * ?":       "At minute 30 of hours 9 to 17 every day",
		"0 0 9-17 ? * MON-FRI":  "At hours 9 to 17 on Monday to Friday",
		"0 15 1/2 * * ?":        "At minute 15 of every 2nd hour from 1 on",
		"* 0 12 * * ?":          "Every second of minute 0 of hour 12 every day",
		"0 0 0 1,15 * ?":        "At 00:00 on the 1st and the 15th of the month",
		"0 0 0 1-10,22 * ?":     "At 00:00 on the 1st to the 10th and the 22nd of the month",
		"0 0 0 L * ?":           "At 00:00 on the last day of the month",
		"0 0 0 L-1,L-2 * ?":     "At 00:00 on the day before the last and the 2nd day before the last of the month",
		"0 0 0 LW * ?":          "At 00:00 on the last weekday of the month",
		"0 0 0 L-3W,13W 3 ?":    "At 00:00 on the weekday nearest to the 13th and the weekday nearest to the 3rd day before the last of March",
		"0 0 0 ? * 6L":          "At 00:00 on the last Friday of the month",
		"0 0 0 ? 1,3 FRI#3,MON": "At 00:00 on Monday and the 3rd Friday of January and March",
		"0 0 0 ? 1-3 SAT-SUN":   "At 00:00 on Saturday and Sunday in January to March",
		"0 0 0 * 6 ?":           "At 00:00 every day in June",
		"0 0 0 1 1 ? 2030-2033": "At 00:00 on the 1st of January in 2030 to 2033",
		"0 0 13 * 5":            "At 00:00 on the 13th of the month or on Friday",
		"@yearly":               "At 00:00 on the 1st of January",
		"@weekly":               "At 00:00 on Sunday",
		"0 * 1 1 *":             "Every hour on the 1st of January",
		"@every 90s":            "Every 1 minute 30 seconds",
		"@every 60m":            "Every hour",
		"@every 1d12h":          "Every 1 day 12 hours",
		"@every 7200":           "Every 2 hours",
	} {
		if got := parse(t, expression).Describe(); got != want {
			t.Errorf("Describe(%s) = %q, want %q", expression, got, want)
		}
	}
}

func TestFiresPerDay(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]float64{
		"0 0 12 * * ?":         1,
		"0/1 * 0 ? * * *":      3600,
		"0 0/5 * * * ?":        288,
		"0 0 0 ? * MON":        1. / 7,
		"0 0 0 1 * ?":          12 / 365.25,
		"0 0 0 29 2 ?":         1 / (4 * 365.25),
		"0 0 0 29 2 ? 2023":    0,
		"0 0 0 29 2 ? 2024":    1. / 366,
		"0 0 0 30 2 ?":         0,
		"@every 90s":           960,
		"@every 7d":            1. / 7,
		"@hourly":              24,
		"0 0 1 * 1":            12/365.25 + 1./7 - 12/365.25/7,
		"* * * * * ? 2020":     86400,
		"0 0 0 1 1 ? 2020/100": 1. / 366,
	} {
		got := parse(t, expression).FiresPerDay()
		if math.Abs(got-want) > 1e-4*want {
			t.Errorf("FiresPerDay(%s) = %v, want %v", expression, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const never = "it never fires: no day from 1970 to 2099 matches"
	berlin := zone(t, "Europe/Berlin")
	now := time.Date(2023, 12, 31, 11, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		expression string
		zone       *time.Location
		saving     cron.Saving
		want       []string
	}{
		{"0 0 12 31 12 ? 2023", nil, cron.Cron, nil},
		{"0 0 12 31 12 ? 2023", berlin, cron.Cron, []string{"it never fires again: its last time was 2023-12-31T12:00:00+01:00"}},
		{"* * * * * ? 2020-2022", nil, cron.Cron, []string{"it never fires again: its last time was 2022-12-31T23:59:59Z"}},
		{"0 0 12 * * ?", nil, cron.Cron, nil},
		{"* * * * * ?", nil, cron.Cron, nil},
		{"@every 1s", nil, cron.Cron, nil},
		{"0 * * * * ?", nil, cron.Cron, nil},
		{"0 * 9-17 * * ?", nil, cron.Cron, nil},
		{"0 0 0 30 2 ?", nil, cron.Cron, []string{never}},
		{"0 0 0 31 4,6,9,11 ?", nil, cron.Cron, []string{never}},
		{"0 0 0 29 2 ? 2023", nil, cron.Cron, []string{never}},
		{"0 0 0 ? 2 1#5 2021", nil, cron.Cron, []string{never}},
		{"0 0 0 L-29 2 ?", nil, cron.Cron, []string{never}},
		{"0 30 2 ? 3 1L 2024", berlin, cron.Quartz, []string{"it never fires: the clock of the time zone skips all its times"}},
		{"0 30 2 ? 3 1L 2024", berlin, cron.Cron, nil},
		{"0/1 * 0 ? * * *", nil, cron.Cron, []string{"it fires every second of an hour, 3600 times a day: for once a minute, let the seconds be 0"}},
		{"* * 9-17 * * ?", nil, cron.Cron, []string{"it fires every second of 9 hours, 32400 times a day: for once a minute, let the seconds be 0"}},
		{"* 0 12 * * ?", nil, cron.Cron, []string{"it fires every second of a minute, 60 times a day: for once in the minute, let the seconds be 0"}},
		{"* 2 * * *", nil, cron.Cron, []string{"it fires every minute of an hour, 60 times a day: for once in the hour, let the minutes be 0"}},
		{"0 0 13 * 5", nil, cron.Cron, []string{"it fires on the days of the month and also on the days of the week: a day need match only one of the two fields"}},
	} {
		got := parse(t, test.expression).In(test.zone, test.saving).Warnings(now)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Warnings of %s:\n%s", test.expression, diff)
		}
	}
}
