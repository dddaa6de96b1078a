package quartz_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/cron"
)

// TestFaults shows where Quartz 2.5.2 contradicts what it says of its language, and that we do not. A version of Quartz that
// mends one of them fails the test: then TestAgreement may ask for more.
func TestFaults(t *testing.T) {
	t.Parallel()
	faults := []struct {
		name, expression, zone string
		after                  string
		quartz, ours           []string
	}{
		{"nW: a Monday that stands for a Sunday fires only once", "0 0 9,13 15W * ?", "UTC", "2024-09-16 09:00:00",
			[]string{"2024-10-15 09:00:00"}, []string{"2024-09-16 13:00:00"}},
		{"nW: a day is entered at the time of day at which the search was", "0 0 9,13 17W * ?", "UTC", "2024-09-10 10:00:00",
			[]string{"2024-09-17 13:00:00"}, []string{"2024-09-17 09:00:00"}},
		{"nW: a Monday that stands for a Sunday is lost once that Sunday has begun", "0 0 10 15W * ?", "UTC", "2024-09-15 11:00:00",
			[]string{"2024-10-15 10:00:00"}, []string{"2024-09-16 10:00:00"}},
		{"L-n in a list: in months of less than 31 days it counts as later than it is", "0 0 0 L-3,27 2 ?", "UTC", "2023-02-01 00:00:00",
			[]string{"2023-02-27 00:00:00"}, []string{"2023-02-25 00:00:00"}},
		{"n#m in a list: the others are taken for it", "0 0 0 ? * MON,FRI#3", "UTC", "2024-09-01 00:00:00",
			[]string{"2024-09-16 00:00:00"}, []string{"2024-09-02 00:00:00"}},
		{"a step after names is passed over", "0 0 0 ? * MON-FRI/2", "UTC", "2024-09-02 00:00:00",
			[]string{"2024-09-03 00:00:00"}, []string{"2024-09-04 00:00:00"}},
		{"where two hours are skipped, the one after is lost", "0 18 * * * ?", "Antarctica/Troll", "2025-03-30 00:18:00",
			[]string{"2025-03-30 02:18:00"}, []string{"2025-03-30 01:18:00"}},
		{"asked while a clock shows a time for the first time, it has missed the second", "0 15 2 * * ?", "Europe/Berlin", "2024-10-27 00:20:00",
			[]string{"2024-10-28 01:15:00"}, []string{"2024-10-27 01:15:00"}},
	}
	questions := make([]question, len(faults))
	for i, f := range faults {
		questions[i] = question{f.expression, f.zone, unix(t, f.after), 1}
	}
	answers := ask(t, questions)
	for i, f := range faults {
		z, err := cron.Zone(f.zone)
		if err != nil {
			t.Fatal(err)
		}
		x, err := cron.Parse(f.expression)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f.quartz, inUTC(answers[i].times)); diff != "" {
			t.Errorf("%s: Quartz answers something else than it did:\n%s", f.name, diff)
		}
		if diff := cmp.Diff(f.ours, inUTC(next(x, z, questions[i]))); diff != "" {
			t.Errorf("%s:\n%s", f.name, diff)
		}
	}
}

func unix(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

func inUTC(times []int64) (texts []string) {
	for _, at := range times {
		texts = append(texts, time.Unix(at, 0).UTC().Format(time.DateTime))
	}
	return texts
}

// TestRefusals: package cron refuses what Quartz refuses, but for lists that Quartz cannot do, and also what Quartz accepts by
// oversight.
func TestRefusals(t *testing.T) {
	t.Parallel()
	refusedByBoth := []string{
		"0 0 0 * *", "60 * * * * ?", "* 60 * * * ?", "* * 24 * * ?", "* * * 32 * ?", "* * * 0 * ?", "* * * * 13 ?", "* * * ? * 8", "* * * ? * 0",
		"* * * * * *", "* * * ? * ?", "? * * * * ?", "*/60 * * * * ?", "* * */24 * * ?", "0/60 * * * * ?", "L * * * * ?", "* * * 5L * ?",
		"* * * L-31 * ?", "* * * ? * 2#6", "* * * ? * 2#0", "* * * ? * MON#", "* * * ? * XYZ", "* * * * FOO ?", "* * * 32W * ?", "* W * * * ?",
		"* * * ? * 2 2030-2020", "1- * * * * ?", "a * * * * ?", "* * * * * ? * *",
	}
	oversights := []string{ // what Quartz makes of it is not what it seems to say
		"1,,2 * * * * ?", ",1 * * * * ?", "*5 * * * * ?", "1.5 * * * * ?", "0 0 0 1 JANUARY ?", "0 0 0 ? * MONDAY", "0 0 0 1-5W * ?", "0/0 * * * * ?",
	}
	var questions []question
	for _, expression := range slices.Concat(refusedByBoth, oversights) {
		questions = append(questions, question{expression, "UTC", 0, 0})
	}
	for i, got := range ask(t, questions) {
		expression := questions[i].expression
		if want := i < len(refusedByBoth); got.refused != want {
			t.Errorf("%s: Quartz refused it: %v, want %v", expression, got.refused, want)
		}
		if _, err := cron.Parse(expression); err == nil {
			t.Errorf("%s: we accept it", expression)
		}
	}
}
