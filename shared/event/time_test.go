package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// A time has six decimals and is in UTC, whatever its zone, and is parsed back unchanged.
func TestTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 3600)
	for want, at := range map[string]time.Time{
		`"2026-01-02T03:04:05.000000Z"`: time.Date(2026, 1, 2, 4, 4, 5, 0, zone),
		`"2026-01-02T03:04:05.120000Z"`: time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC),
		`"1969-12-31T23:59:59.999999Z"`: time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		`"2026-01-02T03:04:05.678901Z"`: time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC),
	} {
		if text := event.FormatTime(at); `"`+text+`"` != want || text != at.UTC().Format(event.TimeLayout) {
			t.Errorf("FormatTime(%s) = %s, want %s", at, text, want)
		}
		text, err := json.Marshal(event.Time{Time: at})
		if err != nil || string(text) != want {
			t.Errorf("Marshal(%s) = %s, %v, want %s", at, text, err, want)
		}
		var read event.Time
		if err := json.Unmarshal(text, &read); err != nil || !read.Equal(at.Truncate(time.Microsecond)) {
			t.Errorf("Unmarshal(%s) = %s, %v", text, read, err)
		}
	}
}
