package cron_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/cron"
)

// The rules for daylight saving, one line each. Times are local, with the offset from UTC.
func TestSaving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, zone, expression string
		saving                 cron.Saving
		from, to               string // local days
		want                   []string
	}{
		{"skipped: when the clock goes on", "Europe/Berlin", "0 30 2 * * ?", cron.Cron, "2024-03-30", "2024-04-02",
			[]string{"30 02:30 +0100", "31 03:00 +0200", "01 02:30 +0200"}},
		{"skipped: lost", "Europe/Berlin", "0 30 2 * * ?", cron.Quartz, "2024-03-30", "2024-04-02",
			[]string{"30 02:30 +0100", "01 02:30 +0200"}},
		{"several skipped: once", "Europe/Berlin", "0 0/20 2 * * ?", cron.Cron, "2024-03-31", "2024-04-01",
			[]string{"31 03:00 +0200"}},
		{"skipped, and due when the clock goes on: once", "Europe/Berlin", "0 0 2,3 * * ?", cron.Cron, "2024-03-31", "2024-04-01",
			[]string{"31 03:00 +0200"}},
		{"repeated: the first time", "Europe/Berlin", "0 30 2 * * ?", cron.Cron, "2024-10-27", "2024-10-28",
			[]string{"27 02:30 +0200"}},
		{"repeated: the second time", "Europe/Berlin", "0 30 2 * * ?", cron.Quartz, "2024-10-27", "2024-10-28",
			[]string{"27 02:30 +0100"}},
		{"recurring: not while skipped", "Europe/Berlin", "0 30 * 31 3 ?", cron.Cron, "2024-03-31", "2024-03-31 05",
			[]string{"31 00:30 +0100", "31 01:30 +0100", "31 03:30 +0200", "31 04:30 +0200"}},
		{"recurring: both times", "Europe/Berlin", "30 * * * *", cron.Cron, "2024-10-27", "2024-10-27 05",
			[]string{"27 00:30 +0200", "27 01:30 +0200", "27 02:30 +0200", "27 02:30 +0100", "27 03:30 +0100", "27 04:30 +0100"}},
		{"recurring: Quartz, too, knows only the second", "Europe/Berlin", "30 * * * *", cron.Quartz, "2024-10-27", "2024-10-27 05",
			[]string{"27 00:30 +0200", "27 01:30 +0200", "27 02:30 +0100", "27 03:30 +0100", "27 04:30 +0100"}},
		{"recurring on one day, repeated at its end", "America/Sao_Paulo", "0 10 * 17 2 ?", cron.Cron, "2018-02-17 22", "2019-01-01",
			[]string{"17 22:10 -0200", "17 23:10 -0200", "17 23:10 -0300"}},
		{"no midnight: an hour later", "America/Sao_Paulo", "@daily", cron.Cron, "2018-11-03", "2018-11-06",
			[]string{"03 00:00 -0300", "04 01:00 -0200", "05 00:00 -0200"}},
		{"no midnight: no day", "America/Sao_Paulo", "@daily", cron.Quartz, "2018-11-03", "2018-11-06",
			[]string{"03 00:00 -0300", "05 00:00 -0200"}},
		{"half an hour skipped", "Australia/Lord_Howe", "0 0/15 2 * * ?", cron.Cron, "2024-10-06", "2024-10-07",
			[]string{"06 02:30 +1100", "06 02:45 +1100"}},
		{"half an hour repeated", "Australia/Lord_Howe", "0 15,45 1 * * ?", cron.Cron, "2024-04-07", "2024-04-08",
			[]string{"07 01:15 +1100", "07 01:45 +1100"}},
		{"half an hour repeated, the second time", "Australia/Lord_Howe", "0 15,45 1 * * ?", cron.Quartz, "2024-04-07", "2024-04-08",
			[]string{"07 01:15 +1100", "07 01:45 +1030"}},
		{"a whole day skipped", "Pacific/Apia", "0 0 12 * * ?", cron.Cron, "2011-12-29", "2012-01-01",
			[]string{"29 12:00 -1000", "31 00:00 +1400", "31 12:00 +1400"}},
		{"a whole day lost", "Pacific/Apia", "0 0 12 * * ?", cron.Quartz, "2011-12-29", "2012-01-01",
			[]string{"29 12:00 -1000", "31 12:00 +1400"}},
		{"lengths of time know no clocks", "Europe/Berlin", "@every 12h", cron.Cron, "2024-03-30", "2024-04-01",
			[]string{"30 01:00 +0100", "30 13:00 +0100", "31 01:00 +0100", "31 14:00 +0200"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			z := zone(t, test.zone)
			table := parse(t, test.expression).In(z, test.saving)
			var got []string
			for at := range table.Between(hourIn(t, z, test.from), hourIn(t, z, test.to).Add(-1)) {
				got = append(got, at.Format("02 15:04 -0700"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// hourIn parses a day, or a day and an hour, of a zone.
func hourIn(t *testing.T, z *time.Location, text string) time.Time {
	t.Helper()
	layout := "2006-01-02 15"[:len(text)]
	at, err := time.ParseInLocation(layout, text, z)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestParseSaving(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]cron.Saving{"": cron.Cron, "cron": cron.Cron, "quartz": cron.Quartz} {
		if got, err := cron.ParseSaving(name); err != nil || got != want {
			t.Errorf("ParseSaving(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := cron.ParseSaving("Quartz"); err == nil {
		t.Errorf("ParseSaving(Quartz) = %v, want an error", got)
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "UTC", "Europe/Berlin", "Etc/GMT+5"} {
		if _, err := cron.Zone(name); err != nil {
			t.Errorf("Zone(%q) = %v", name, err)
		}
	}
	for _, name := range []string{
		"Local", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "Factory", "+02:00", "UTC+2", "-05",
		"europe/berlin", " UTC", "UTC ", "Europe/Berlin/", "Europe//Berlin", "Etc/../UTC", "zone.tab", "tzdata.zi",
		"Mars/Olympus", "../etc/passwd", "Europe/", "/etc/localtime",
	} {
		if z, err := cron.Zone(name); err == nil {
			t.Errorf("Zone(%q) = %v, want an error", name, z)
		}
	}
}
