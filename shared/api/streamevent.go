package api

import (
	"bytes"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/stream"
)

// This file reads an event of a stream, strictly: whatever breaks the schema StreamEvent is a 400 at the member that does.

// zones are the time zones that were found to be known: finding one reads a file.
type zones struct{ known sync.Map }

func (z *zones) parseStreamEvent(body []byte) (stream.Event, error) {
	value, err := parseBody(body)
	if err != nil {
		return stream.Event{}, err
	}
	return z.streamEvent("body", value)
}

func (z *zones) parseStreamEvents(body []byte) ([]stream.Event, error) {
	value, err := parseBody(body)
	if err != nil {
		return nil, err
	}
	var all []stream.Event
	err = readList("body", value, stream.MaxBatch, func(location string, value jsontext.Value) error {
		e, err := z.streamEvent(location, value)
		all = append(all, e)
		return err
	})
	return all, err
}

func (z *zones) streamEvent(location string, value jsontext.Value) (stream.Event, error) {
	e := stream.Event{Version: 1}
	parts := map[string]jsontext.Value{}
	keep := func(name string, check func(string, jsontext.Value) error) member {
		return member{name: name, required: true, read: func(location string, value jsontext.Value) error {
			parts[name] = value.Clone()
			return check(location, value)
		}}
	}
	err := readObject(location, value,
		member{name: "event", required: true, read: func(location string, value jsontext.Value) error {
			return readObject(location, value, nameMember(&e.Name), versionMember(&e.Version), refusedID())
		}},
		keep("system", z.checkSystem), keep("trigger", checkTrigger), keep("payload", checkPayload),
	)
	if err != nil {
		return e, err
	}
	if e.Body, err = joined(parts); err == nil && len(e.Body) > stream.MaxBody {
		err = problem(CodeTooLarge, "system, trigger and payload have %d bytes together, at most %d are possible", len(e.Body), stream.MaxBody).at(location)
	}
	return e, err
}

// joined renders the members besides "event" in a fixed order, without spaces between tokens.
func joined(parts map[string]jsontext.Value) ([]byte, error) {
	var b bytes.Buffer
	for i, name := range []string{"system", "trigger", "payload"} {
		value := parts[name]
		if err := value.Compact(); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `":`)
		b.Write(value)
	}
	return b.Bytes(), nil
}

func nameMember(into *string) member {
	return member{name: "name", required: true, read: func(location string, value jsontext.Value) error {
		text, err := readText(location, value)
		if err != nil {
			return err
		}
		*into, err = checkedName(location, text)
		return err
	}}
}

func versionMember(into *int64) member {
	return member{name: "version", read: func(location string, value jsontext.Value) error {
		n, ok := wholeNumber(value, 1, int64(event.MaxID))
		if !ok {
			return invalid(location, "want a whole number from 1 to 2^53")
		}
		*into = n
		return nil
	}}
}

func refusedID() member {
	return member{name: "id", read: func(location string, _ jsontext.Value) error {
		return invalid(location, "is given by the server: leave it out")
	}}
}

func (z *zones) checkSystem(location string, value jsontext.Value) error {
	return readObject(location, value,
		checkedMember("id", func(location, text string) error {
			if _, err := stream.ParseUUID(text); err != nil {
				return invalid(location, "%v", err)
			}
			return nil
		}),
		checkedMember("name", checkNotEmpty),
		checkedMember("time", checkTime),
		checkedMember("timezone", z.check),
	)
}

// check accepts the names of the IANA database, and no names that depend on the host.
func (z *zones) check(location, name string) error {
	if _, known := z.known.Load(name); known {
		return nil
	}
	if name == "" {
		return invalid(location, "is empty, want a name of the IANA database, as Europe/Berlin")
	}
	if _, err := cron.Zone(name); err != nil {
		return invalid(location, "want a name of the IANA database, as Europe/Berlin")
	}
	z.known.Store(name, struct{}{})
	return nil
}

// isoLayouts are the forms of ISO 8601 with a date and a time, to the minute at least. Go reads fractions of the second
// after any of them.
var isoLayouts = [...]string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07", "2006-01-02T15:04",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405", "20060102T1504Z0700", "20060102T1504",
}

func checkTime(location, text string) error {
	for _, layout := range isoLayouts {
		if _, err := time.Parse(layout, text); err == nil {
			return nil
		}
	}
	return invalid(location, "want a date and time of ISO 8601, such as 2021-03-10T22:13:32+01:00")
}

func checkTrigger(location string, value jsontext.Value) error {
	return readObject(location, value,
		checkedMember("type", func(location, text string) error {
			if text != "automatic" && text != "manual" {
				return invalid(location, "want automatic or manual")
			}
			return nil
		}),
		checkedMember("name", checkNotEmpty),
	)
}

func checkNotEmpty(location, text string) error {
	if text == "" {
		return invalid(location, "is empty, want at least one character")
	}
	return nil
}

func checkPayload(location string, value jsontext.Value) error {
	if value.Kind() != '{' {
		return invalid(location, "want an object, not %s", kindOfJSON(value))
	}
	return limited(location, value)
}

// checkedMember is a member that is a text, must be there and passes a check.
func checkedMember(name string, check func(location, text string) error) member {
	return member{name: name, required: true, read: func(location string, value jsontext.Value) error {
		text, err := readText(location, value)
		if err != nil {
			return err
		}
		return check(location, text)
	}}
}
