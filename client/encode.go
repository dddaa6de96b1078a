package client

import (
	"encoding/json"

	"github.com/millrace/millrace/shared/event"
)

// appendArray appends the events as the body of an append. Ids are left out: the journal gives them.
func appendArray(b []byte, events []event.Event) []byte {
	b = append(b, '[')
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEvent(b, &events[i])
	}
	return append(b, ']')
}

func appendEvent(b []byte, e *event.Event) []byte {
	b = append(b, `{"TYPE":`...)
	b = appendString(b, e.Type)
	if e.Key.Path != "" {
		b = append(b, `,"key":`...)
		b = appendString(b, e.Key.Path)
	}
	if len(e.Fields) > 0 {
		b = append(b, ',')
		b = append(b, e.Fields...)
	}
	return append(b, '}')
}

// appendMember appends a member to those that are there.
func appendMember(b []byte, name string, value json.RawMessage) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = appendString(b, name)
	b = append(b, ':')
	return append(b, value...)
}

func appendString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return append(b, quoted...)
}
