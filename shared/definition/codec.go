package definition

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// durations are written as [event.ParseDuration] reads them.
var durations = json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
	return e.WriteToken(jsontext.String(event.FormatDuration(d)))
})

var readDurations = json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *time.Duration) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	*to, err = event.ParseDuration(token.String())
	return err
})

// times are written as everywhere, see [event.TimeLayout].
var times = json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteValue(event.AppendTime(nil, t))
})

// written are the values that JSON has forms of its own for.
var written = json.JoinMarshalers(durations, times)

// JSON answers the set as the file has it: [Read] answers the same set for it.
func (s *Set) JSON() []byte { return encode(s) }

// decode reads what JSON wrote. Members that it does not know are left out: a newer version wrote them.
func decode(text []byte) (*Set, error) {
	s := new(Set)
	if err := json.Unmarshal(text, s, json.WithUnmarshalers(readDurations)); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	s.sound = true // or it would not be in force
	return s, nil
}
