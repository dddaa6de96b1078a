package event

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration as queries, JSON and YAML give it:
//   - a number of seconds: "60", "111.5";
//   - numbers with units, the larger first: "200ms", "60s", "5m", "1h2m3s", "7d";
//   - ISO 8601: "PT1M", "P1D", "PT0.123S", "P1DT2H", "P2W"; not years and months, which have no fixed length.
//
// Only the last number may have decimals; those finer than a nanosecond are cut off. Letters may be of either case, as in
// JobScheduler's event API. Negative durations and those beyond 292 years are refused. Errors say what is wrong and quote
// the text; the caller adds where it was.
func ParseDuration(text string) (time.Duration, error) {
	ns, err := parseDuration(strings.ToLower(text))
	if err == nil && ns > math.MaxInt64 {
		err = errDurationRange
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: %w", shorten(text), err)
	}
	return time.Duration(ns), nil
}

// ParseWait is [ParseDuration] for how long to wait, which the caller cuts anyway: of one beyond 292 years it returns the longest
// duration.
func ParseWait(text string) (time.Duration, error) {
	ns, err := parseDuration(strings.ToLower(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: %w", shorten(text), err)
	}
	return time.Duration(min(ns, math.MaxInt64)), nil
}

// The reasons why a text is not a duration.
var (
	errDurationForm     = errors.New(`give seconds, as "60", units, as "1h2m3s", "200ms" or "7d", or ISO 8601, as "PT1M"`)
	errDurationNegative = errors.New("it is negative")
	errDurationRange    = errors.New("it is longer than 292 years")
	errDurationCalendar = errors.New("years and months have no fixed length: give days")
	errDurationOrder    = errors.New("units go from the larger to the smaller, each at most once")
	errDurationDecimals = errors.New("only the last number may have decimals")
)

// parseDuration returns nanoseconds; the largest number stands for what is beyond it.
func parseDuration(s string) (uint64, error) {
	switch {
	case strings.HasPrefix(s, "-"), strings.HasPrefix(s, "p-"), strings.HasPrefix(s, "pt-"):
		return 0, errDurationNegative
	case strings.HasPrefix(s, "p"):
		return parseISO(s[1:])
	case s == "" || !isDigit(s[0]):
		return 0, errDurationForm
	case strings.Trim(s, "0123456789.") == "":
		return multiply(s, time.Second)
	default:
		return sum(s, shortUnits[:])
	}
}

// parseISO reads what follows the "p".
func parseISO(s string) (uint64, error) {
	date, clock, hasClock := strings.Cut(s, "t")
	if s == "" || hasClock && clock == "" {
		return 0, errDurationForm
	}
	if strings.ContainsAny(date, "ym") {
		return 0, errDurationCalendar
	}
	if hasClock && strings.ContainsAny(date, ".,") {
		return 0, errDurationDecimals
	}
	days, err := sum(strings.ReplaceAll(date, ",", "."), dateUnits[:])
	if err != nil {
		return 0, err
	}
	rest, err := sum(strings.ReplaceAll(clock, ",", "."), clockUnits[:])
	if err != nil {
		return 0, err
	}
	return plus(days, rest), nil
}

type unit struct {
	name   string
	length time.Duration
}

const day = 24 * time.Hour

// The units of each form, in the order in which they must be given.
var (
	shortUnits = [...]unit{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
	dateUnits  = [...]unit{{"w", 7 * day}, {"d", day}}
	clockUnits = [...]unit{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
)

// sum adds numbers with units up. The larger units come first, each at most once.
func sum(s string, units []unit) (uint64, error) {
	var total uint64
	next, decimals := 0, false
	for s != "" {
		var number, name string
		number, s = span(s, func(c byte) bool { return isDigit(c) || c == '.' })
		name, s = span(s, func(c byte) bool { return !isDigit(c) && c != '.' })
		i := slices.IndexFunc(units, func(u unit) bool { return u.name == name })
		switch {
		case i < 0:
			return 0, errDurationForm
		case i < next:
			return 0, errDurationOrder
		case decimals:
			return 0, errDurationDecimals
		}
		d, err := multiply(number, units[i].length)
		if err != nil {
			return 0, err
		}
		total, next, decimals = plus(total, d), i+1, strings.Contains(number, ".")
	}
	return total, nil
}

// multiply returns the decimal number times length.
func multiply(number string, length time.Duration) (uint64, error) {
	whole, fraction, point := strings.Cut(number, ".")
	if whole == "" || point && fraction == "" || strings.Contains(fraction, ".") {
		return 0, errDurationForm
	}
	n, _ := strconv.ParseUint(whole, 10, 64) // the largest number if it is beyond it
	beyond, ns := bits.Mul64(n, uint64(length))
	if beyond > 0 {
		ns = math.MaxUint64
	}
	return plus(ns, fractionOf(fraction, length)), nil
}

// plus returns a + b, or the largest number if that is beyond it.
func plus(a, b uint64) uint64 {
	total, beyond := bits.Add64(a, b, 0)
	if beyond > 0 {
		return math.MaxUint64
	}
	return total
}

// fractionOf returns length times 0.digits, cut to nanoseconds. Digits after the eighteenth are ignored: they are less
// than a thousandth of a nanosecond even of weeks.
func fractionOf(digits string, length time.Duration) uint64 {
	var numerator, denominator uint64 = 0, 1
	for _, c := range []byte(digits[:min(len(digits), 18)]) {
		numerator, denominator = numerator*10+uint64(c-'0'), denominator*10
	}
	high, low := bits.Mul64(numerator, uint64(length))
	quotient, _ := bits.Div64(high, low, denominator) // less than length, as numerator < denominator
	return quotient
}

// FormatDuration writes a duration as [ParseDuration] reads it, exactly and short: "0s", "200ms", "1m30s", "7d",
// "1h0.5s". A negative one, which ParseDuration refuses, gets a minus sign.
func FormatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + formatUnits(uint64(-d)) // right for the smallest Duration too: the conversion gives its magnitude
	case d == 0:
		return "0s"
	default:
		return formatUnits(uint64(d))
	}
}

func formatUnits(ns uint64) string {
	var b []byte
	for _, u := range shortUnits[:3] {
		if n := ns / uint64(u.length); n > 0 {
			b = append(strconv.AppendUint(b, n, 10), u.name...)
			ns %= uint64(u.length)
		}
	}
	const ms, second = uint64(time.Millisecond), uint64(time.Second)
	switch {
	case ns == 0:
		return string(b)
	case ns < second && ns%ms == 0:
		return string(append(strconv.AppendUint(b, ns/ms, 10), "ms"...))
	case ns%second == 0:
		return string(append(strconv.AppendUint(b, ns/second, 10), 's'))
	default:
		fraction := strings.TrimRight(fmt.Sprintf("%09d", ns%second), "0")
		return string(fmt.Appendf(b, "%d.%ss", ns/second, fraction))
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// span splits s after its longest prefix of bytes for which in is true.
func span(s string, in func(byte) bool) (string, string) {
	for i := range len(s) {
		if !in(s[i]) {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// shorten cuts a quotation of what a client sent to 40 bytes.
func shorten(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
