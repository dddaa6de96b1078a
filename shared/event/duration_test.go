package event_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
)

const day = 24 * time.Hour

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		// As in JobScheduler's event API.
		"60":       time.Minute,
		"60s":      time.Minute,
		"111.5":    111500 * time.Millisecond,
		"1m":       time.Minute,
		"1h2m3s":   time.Hour + 2*time.Minute + 3*time.Second,
		"0.123s":   123 * time.Millisecond,
		"PT0.123S": 123 * time.Millisecond,
		"P1d":      day,
		"60S":      time.Minute,
		// Beyond it.
		"0":                         0,
		"000":                       0,
		"0s":                        0,
		"PT0S":                      0,
		"1":                         time.Second,
		"200ms":                     200 * time.Millisecond,
		"1.5ms":                     1500 * time.Microsecond,
		"5m":                        5 * time.Minute,
		"7d":                        7 * day,
		"1d12h":                     36 * time.Hour,
		"1.5h":                      90 * time.Minute,
		"1m200ms":                   time.Minute + 200*time.Millisecond,
		"1s200ms":                   1200 * time.Millisecond,
		"PT1M":                      time.Minute,
		"P1D":                       day,
		"P1DT2H":                    26 * time.Hour,
		"P2W":                       14 * day,
		"P1W1DT1H1M1S":              8*day + time.Hour + time.Minute + time.Second,
		"PT0,5S":                    500 * time.Millisecond,
		"P0.5D":                     12 * time.Hour,
		"pt36h":                     36 * time.Hour,
		"0.000000001":               1,
		"0.0000000019":              1, // cut off
		"0.99999999999999999999999": time.Second - 1,
		"9223372036":                9223372036 * time.Second,
		"9223372036.854775807":      math.MaxInt64,
		"106751d":                   106751 * day,
	} {
		if got, err := event.ParseDuration(text); got != want || err != nil {
			t.Errorf("ParseDuration(%s) = %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseDurationRefuses(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		"":                     "give seconds",
		" 1":                   "give seconds",
		"1 ":                   "give seconds",
		"+1":                   "give seconds",
		"s":                    "give seconds",
		".1":                   "give seconds",
		".1s":                  "give seconds",
		"1.":                   "give seconds",
		"1.s":                  "give seconds",
		"1.2.3":                "give seconds",
		"1e3":                  "give seconds",
		"1x":                   "give seconds",
		"1us":                  "give seconds",
		"1sec":                 "give seconds",
		"1h2":                  "give seconds",
		"P":                    "give seconds",
		"PT":                   "give seconds",
		"P1DT":                 "give seconds",
		"P1":                   "give seconds",
		"PT1":                  "give seconds",
		"P1H":                  "give seconds",
		"PT1D":                 "give seconds",
		"PT1H1H":               "each at most once",
		"PT1M1H":               "from the larger to the smaller",
		"1s1m":                 "from the larger to the smaller",
		"1m1m":                 "each at most once",
		"1.5h30m":              "only the last number",
		"P0.5DT1H":             "only the last number",
		"PT1.5M3S":             "only the last number",
		"P1Y":                  "no fixed length",
		"P1M":                  "no fixed length",
		"-1":                   "negative",
		"-1s":                  "negative",
		"-PT1S":                "negative",
		"PT-1S":                "negative",
		"P-1D":                 "negative",
		"9223372036.854775808": "292 years",
		"9223372037":           "292 years",
		"99999999999999999999": "292 years",
		"106752d":              "292 years",
		"P15250WT99999999H":    "292 years",
		"106751d24h":           "292 years",
		"P106751DT24H":         "292 years",
	} {
		got, err := event.ParseDuration(text)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseDuration(%q) = %v, %v, want an error with %q", text, got, err, reason)
		}
	}
	if _, err := event.ParseDuration(strings.Repeat("9", 1000)); len(err.Error()) > 200 {
		t.Errorf("the error of a long text has %d bytes, want few", len(err.Error()))
	}
}

// How long to wait is cut anyway, so that no text of the form is too long. It must have the form all the same.
func TestParseWait(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"9223372036.854775808", "99999999999999999999", "18446744073709551616ms", "106752d", "106751d24h", "P106752DT1H", "P106751DT99999999H"} {
		if got, err := event.ParseWait(text); got != math.MaxInt64 || err != nil {
			t.Errorf("ParseWait(%s) = %v, %v, want the longest", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "99999999999999999999x", "106752d5", "106752d1d", "P106752DT", "P106752DT1H1H", "P106752DT1Q", "99999999999999999999."} {
		if got, err := event.ParseWait(text); err == nil {
			t.Errorf("ParseWait(%s) = %v, want an error", text, got)
		}
	}
	if got, err := event.ParseWait("1m"); got != time.Minute || err != nil {
		t.Errorf("ParseWait(1m) = %v, %v", got, err)
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s":                          0,
		"200ms":                       200 * time.Millisecond,
		"0.0005s":                     500 * time.Microsecond,
		"1.5s":                        1500 * time.Millisecond,
		"1m":                          time.Minute,
		"1h2m3s":                      time.Hour + 2*time.Minute + 3*time.Second,
		"1h200ms":                     time.Hour + 200*time.Millisecond,
		"7d":                          7 * day,
		"106751d23h47m16.854775807s":  math.MaxInt64,
		"-1m":                         -time.Minute,
		"-106751d23h47m16.854775808s": math.MinInt64,
	} {
		if got := event.FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %s, want %s", d, got, want)
		}
	}
}
