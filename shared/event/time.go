package event

import "time"

// TimeLayout is the form of times in JSON: RFC 3339 in UTC with six decimals. The time to format must be in UTC.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// AppendTime appends a time of any zone as a JSON string, in the form of [TimeLayout].
func AppendTime(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), TimeLayout), '"')
}

// Time is a time whose JSON has the form of [TimeLayout], trailing zeros too. RFC 3339 of any zone can be read.
type Time struct{ time.Time }

// MarshalJSON returns the time as a JSON string.
func (t Time) MarshalJSON() ([]byte, error) { return AppendTime(nil, t.Time), nil }
