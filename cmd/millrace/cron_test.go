package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCronNext(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		args       []string
		status     int
		out, notes string // out as a whole, a part of notes
	}{
		{"table", []string{"0 30 2 * * ?", "--tz", "Europe/Berlin", "--after", "2024-03-30T12:00:00Z", "--count", "2"}, statusOK,
			"Sun 2024-03-31 03:00:00 +02:00\nMon 2024-04-01 02:30:00 +02:00\n", "At 02:30 every day; once a day on average"},
		{"dst", []string{"0 30 2 * * ?", "--tz", "Europe/Berlin", "--after", "2024-03-30T12:00:00Z", "--count", "1", "--dst", "quartz"}, statusOK,
			"Mon 2024-04-01 02:30:00 +02:00\n", ""},
		{"warning", []string{"0/1 * 0 ? * * *", "--after", "2021-02-10T00:00:00Z", "--count", "1"}, statusOK,
			"Wed 2021-02-10 00:00:01 +00:00\n", "warning: it fires every second of an hour"},
		{"jsonl", []string{"@daily", "--after", "2021-02-10T00:00:00Z", "--count", "1", "-o", "jsonl"}, statusOK, "\"2021-02-11T00:00:00.000000Z\"\n", ""},
		{"json", []string{"0 0 30 2 *", "-o", "json"}, statusOK,
			"{\n  \"times\": [],\n  \"description\": \"At 00:00 on the 30th of February\",\n  \"fires_per_day\": 0,\n  \"warnings\": [\n" +
				"    \"it never fires: no day from 1970 to 2099 matches\"\n  ]\n}\n", ""},
		{"refused", []string{"0 0 25 * * ?"}, statusUsage, "", "character 5: hours go from 0 to 23"},
		{"zone", []string{"@daily", "--tz", "Mars/Olympus"}, statusUsage, "", "Mars/Olympus"},
		{"count", []string{"@daily", "--count", "0"}, statusUsage, "", "want at least 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out, notes bytes.Buffer
			status := run(t.Context(), append([]string{"cron", "next"}, test.args...), console{in: strings.NewReader(""), out: &out, err: &notes})
			if status != test.status || out.String() != test.out || !strings.Contains(notes.String(), test.notes) {
				t.Errorf("cron next %q = %d\n%s%s\nwant %d\n%s%s", test.args, status, &out, &notes, test.status, test.out, test.notes)
			}
		})
	}
}
