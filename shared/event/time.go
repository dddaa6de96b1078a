package event

import "time"

// TimeLayout is how times look in JSON: RFC 3339 in UTC with six decimals. The time must be in UTC.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// AppendTime appends a time of any zone as a JSON string.
func AppendTime(dst []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), TimeLayout), '"')
}

// Time is a time that JSON shows as [TimeLayout] says, trailing zeros too. It is read as RFC 3339 of any zone.
type Time struct{ time.Time }

// MarshalJSON returns the time as a JSON string.
func (t Time) MarshalJSON() ([]byte, error) { return AppendTime(nil, t.Time), nil }
