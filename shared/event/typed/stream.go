package typed

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
)

// StreamAppended is the event of an append to a stream.
type StreamAppended struct {
	Name     string // of the stream's event
	Sequence int64  // of that name, from 1
	ID       string // the UUID of the stream's event
	Producer string // the UUID of the producer
}

// Event returns the event of the stream with that name.
func (s StreamAppended) Event(stream string) event.Event {
	const rest = len(`"name":"","sequence":1234567890123456,"id":"","producer":""`)
	fields := make([]byte, 0, rest+len(s.Name)+len(s.ID)+len(s.Producer))
	fields, _ = jsontext.AppendQuote(append(fields, `"name":`...), s.Name) // names are UTF-8
	fields = strconv.AppendInt(append(fields, `,"sequence":`...), s.Sequence, 10)
	fields = appendText(append(fields, `,"id":`...), s.ID)
	fields = appendText(append(fields, `,"producer":`...), s.Producer)
	return event.Event{Type: event.StreamAppended, Key: event.Key{Path: stream}, Fields: fields}
}

// ReadStreamAppended returns the fields of an event of the type [event.StreamAppended].
func ReadStreamAppended(e *event.Event) (s StreamAppended) {
	for name, value := range event.Members(e.Fields) {
		switch string(name) {
		case `"name"`:
			s.Name = readText[string](value)
		case `"sequence"`:
			s.Sequence = readInt(value)
		case `"id"`:
			s.ID = readText[string](value)
		case `"producer"`:
			s.Producer = readText[string](value)
		}
	}
	return s
}
