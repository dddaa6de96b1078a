package cron_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/shared/cron"
)

// typical are expressions as people write them.
var typical = []string{"0 0 12 * * ?", "0 0/5 * * * ?", "0 30 9 ? * MON-FRI", "0 0 0 L * ?", "0 0 8 ? * 6#3", "*/15 * * * *", "0 0 1 * 1", "@every 90s"}

func BenchmarkNext(b *testing.B) {
	for _, name := range []string{"UTC", "Europe/Berlin"} {
		z := zone(b, name)
		for _, expression := range typical {
			b.Run(name+"/"+expression, func(b *testing.B) {
				table := parse(b, expression).In(z, cron.Cron)
				begin := time.Date(2026, 2, 1, 0, 0, 0, 0, z)
				at := begin
				b.ReportAllocs()
				for b.Loop() {
					next, found := table.Next(at)
					if at = next; !found || next.Year() > 2030 {
						at = begin
					}
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, expression := range typical {
		b.Run(expression, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cron.Parse(expression); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSearchDoesNotAllocate(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"} {
		z := zone(t, name)
		for _, expression := range typical {
			table := parse(t, expression).In(z, cron.Cron)
			at := time.Date(2026, 2, 1, 0, 0, 0, 0, z)
			allocated := testing.AllocsPerRun(1000, func() {
				at, _ = table.Next(at)
				_, _ = table.Previous(at)
			})
			if allocated != 0 && !raced {
				t.Errorf("%s in %s: a search allocates %v times", expression, name, allocated)
			}
		}
	}
}
