package definition

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// durations writes durations in the form that [event.ParseDuration] reads.
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

// times writes times in the form of [event.TimeLayout].
var times = json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteValue(event.AppendTime(nil, t))
})

// written are the marshalers of values whose JSON differs from the default.
var written = json.JoinMarshalers(durations, times)

// JSON returns the set as JSON in the form of the file, without file orders: [Read] of it returns a set that is equal but for those.
func (s *Set) JSON() []byte {
	if len(s.FileOrders) == 0 {
		return s.stored()
	}
	return s.withFileOrders(nil).stored()
}

// stored returns the whole set as JSON.
func (s *Set) stored() []byte { return encode(s) }

// decode parses what stored returned. It ignores unknown members, which a newer version wrote.
func decode(text []byte) (*Set, error) {
	s := new(Set)
	if err := json.Unmarshal(text, s, json.WithUnmarshalers(readDurations)); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	s.sound = true // only sound sets are stored
	return s, nil
}
