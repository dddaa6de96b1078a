package client

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Time is a time of the server; zero where it has not been reached.
type Time struct{ time.Time }

// MarshalJSON returns the time in the server's form: "" for zero.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return event.AppendTime(nil, t.Time), nil
}

// inQuotes is the server's form without escapes.
const inQuotes = `"` + time.RFC3339 + `"`

// UnmarshalJSON reads the form of MarshalJSON.
func (t *Time) UnmarshalJSON(text []byte) error {
	if len(text) > len(`""`) {
		if parsed, err := time.Parse(inQuotes, string(text)); err == nil {
			t.Time = parsed
			return nil
		}
	}
	var at string
	if err := json.Unmarshal(text, &at); err != nil {
		return err
	}
	t.Time = time.Time{}
	if at == "" {
		return nil
	}
	parsed, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	t.Time = parsed
	return nil
}
