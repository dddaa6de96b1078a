package cron_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/cron"
)

func Example() {
	x, err := cron.Parse("0 30 2 ? * SUN#1")
	if err != nil {
		fmt.Println(err)
		return
	}
	zone, err := cron.Zone("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Describe())
	next, found := x.In(zone, cron.Cron).Next(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	fmt.Println(next, found)
	// Output:
	// At 02:30 on the 1st Sunday of the month
	// 2026-12-06 02:30:00 +0100 CET true
}

func ExampleParse_refused() {
	_, err := cron.Parse("0 0 25 * * ?")
	fmt.Println(err)
	// Output: cron expression "0 0 25 * * ?", character 5: hours go from 0 to 23
}

func ExampleTimetable_Between() {
	x, err := cron.Parse("0 0 * * FRI")
	if err != nil {
		fmt.Println(err)
		return
	}
	from := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for at := range x.In(time.UTC, cron.Cron).Between(from, from.AddDate(0, 0, 14)) {
		fmt.Println(at.Format(time.DateOnly))
	}
	// Output:
	// 2026-11-20
	// 2026-11-27
	// 2026-12-04
}

func ExampleTimetable_Warnings() {
	x, err := cron.Parse("0/1 * 0 ? * * *") // an example of EventNative's task scheduler, which says "every minute"
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Describe(), "-", x.FiresPerDay(), "times a day")
	for _, warning := range x.In(nil, cron.Cron).Warnings(time.Now()) {
		fmt.Println(warning)
	}
	// Output:
	// Every second of hour 0 every day - 3600 times a day
	// it fires every second of an hour, 3600 times a day: for once a minute, let the seconds be 0
}
