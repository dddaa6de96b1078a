package event

import "time"

// TimeLayout is the form of times in JSON: RFC 3339 in UTC with six decimals. The time to format must be in UTC.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// AppendTime appends a time of any zone as a JSON string, in the form of [TimeLayout].
func AppendTime(dst []byte, t time.Time) []byte {
	return append(appendTime(append(dst, '"'), t), '"')
}

// FormatTime returns a time of any zone in the form of [TimeLayout].
func FormatTime(t time.Time) string {
	var text [len(TimeLayout)]byte
	return string(appendTime(text[:0], t))
}

// appendTime appends a time in the form of [TimeLayout]: as RFC 3339 without a fraction, for which package time need not read a
// layout, and six decimals.
func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(dst, time.RFC3339)
	dst[len(dst)-1] = '.' // which was Z
	micro := t.Nanosecond() / 1000
	for unit := 100_000; unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(micro/unit%10))
	}
	return append(dst, 'Z')
}

// Time is a time whose JSON has the form of [TimeLayout], trailing zeros too. RFC 3339 of any zone can be read.
type Time struct{ time.Time }

// MarshalJSON returns the time as a JSON string.
func (t Time) MarshalJSON() ([]byte, error) { return AppendTime(nil, t.Time), nil }
