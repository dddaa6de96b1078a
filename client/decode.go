package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/shared/event"
)

// decodeAnswer reads an event sequence as in JobScheduler's event API: NonEmpty, Empty or Torn.
func decodeAnswer(body []byte, q Query) (Answer, error) {
	seq, ok := event.ScanSeq(body)
	if !ok {
		var err error
		if seq, err = event.ParseSeq(body); err != nil {
			return Answer{}, err
		}
	}
	answer := Answer{Events: seq.Events, Torn: seq.Kind == event.Torn, Last: max(seq.LastEventID, q.After)}
	for i := range answer.Events {
		if err := q.complete(&answer.Events[i]); err != nil {
			return Answer{}, err
		}
	}
	if n := len(answer.Events); n > 0 {
		answer.Last = answer.Events[n-1].ID
	}
	return answer, nil
}

// complete gives an event what its place in a response to q says.
func (q *Query) complete(e *event.Event) error {
	if e.Key.IsZero() {
		e.Key.Path = q.Path // the events of a single object have no key
	}
	if q.Causes {
		if err := e.TakeOrigin(); err != nil {
			return fmt.Errorf("answer: event %d: %w", e.ID, err)
		}
	}
	return nil
}

// decodeSnapshot reads the ObjectOverviews of a snapshot.
func decodeSnapshot(body []byte) (Snapshot, error) {
	var stamped struct {
		Objects []json.RawMessage `json:"objects"`
		EventID event.ID          `json:"eventId"`
	}
	if err := json.Unmarshal(body, &stamped); err != nil {
		return Snapshot{}, fmt.Errorf("answer: %w", err)
	}
	s := Snapshot{EventID: stamped.EventID, Objects: make([]Object, len(stamped.Objects))}
	for i, raw := range stamped.Objects {
		if err := decodeObject(raw, &s.Objects[i]); err != nil {
			return Snapshot{}, fmt.Errorf("answer: object %d: %w", i, err)
		}
	}
	return s, nil
}

// lastType is the member of an object that has the type of its last event.
const lastType = "lastType"

func decodeObject(raw []byte, o *Object) error {
	overview, err := event.ParseEvent(raw)
	if err != nil {
		return err
	}
	o.Key, o.EventID = overview.Key, overview.ID
	walked := Members(overview.Fields, func(name string, value []byte) {
		if name == lastType {
			err = json.Unmarshal(value, &o.LastType)
			return
		}
		o.Fields = appendMember(o.Fields, name, value)
	})
	return errors.Join(walked, err)
}

// Members calls each with the name and the JSON value of every field, in their order. Fields are as in an event or an
// [Object]: members without braces.
func Members(fields []byte, each func(name string, value []byte)) error {
	d := json.NewDecoder(bytes.NewReader(slices.Concat([]byte{'{'}, fields, []byte{'}'})))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		each(name.(string), value)
	}
	return nil
}

// appendMember appends a member to others, with a comma between.
func appendMember(b []byte, name string, value json.RawMessage) []byte {
	quoted, err := json.Marshal(name)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(append(b, quoted...), ':')
	return append(b, value...)
}
