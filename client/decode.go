package client

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/shared/event"
)

// decodeAnswer reads an event sequence of seed 000: NonEmpty, Empty or Torn.
func decodeAnswer(body []byte, q Query) (Answer, error) {
	var sequence struct {
		Type   string            `json:"TYPE"`
		Last   event.ID          `json:"lastEventId"`
		Events []json.RawMessage `json:"eventSnapshots"`
	}
	if err := json.Unmarshal(body, &sequence); err != nil {
		return Answer{}, fmt.Errorf("answer: %w", err)
	}
	switch sequence.Type {
	case "Torn":
		return Answer{Torn: true, Last: q.After}, nil
	case "Empty":
		return Answer{Last: max(sequence.Last, q.After)}, nil
	case "NonEmpty":
		return nonEmpty(sequence.Events, q)
	}
	return Answer{}, fmt.Errorf("answer: no event sequence is of type %q", sequence.Type)
}

func nonEmpty(raw []json.RawMessage, q Query) (Answer, error) {
	answer := Answer{Events: make([]event.Event, len(raw)), Last: q.After}
	for i, r := range raw {
		e, err := decodeEvent(r)
		if err != nil {
			return Answer{}, fmt.Errorf("answer: event %d: %w", i, err)
		}
		if e.Key == (event.Key{}) {
			e.Key = event.Key{Path: q.Path} // the events of a single object leave it out
		}
		answer.Events[i] = e
		answer.Last = e.ID
	}
	return answer, nil
}

// decodeEvent reads one event: eventId, key and TYPE, and whatever else as its fields.
func decodeEvent(raw []byte) (event.Event, error) {
	var e event.Event
	err := members(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "eventId":
			return json.Unmarshal(value, &e.ID)
		case "TYPE":
			return json.Unmarshal(value, &e.Type)
		case "key":
			return decodeKey(value, &e.Key)
		}
		e.Fields = appendMember(e.Fields, name, value)
		return nil
	})
	return e, err
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

func decodeObject(raw []byte, o *Object) error {
	return members(raw, func(name string, value json.RawMessage) error {
		switch name {
		case "TYPE":
			return nil
		case "key":
			return decodeKey(value, &o.Key)
		case "eventId":
			return json.Unmarshal(value, &o.EventID)
		case "lastType":
			return json.Unmarshal(value, &o.LastType)
		}
		o.Fields = appendMember(o.Fields, name, value)
		return nil
	})
}

// decodeKey reads a key: a path, or the object that names a task.
func decodeKey(raw []byte, key *event.Key) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &key.Path)
	}
	var task struct {
		JobPath string `json:"jobPath"`
		TaskID  string `json:"taskId"`
	}
	err := json.Unmarshal(raw, &task)
	*key = event.Key{Path: task.JobPath, TaskID: task.TaskID}
	return err
}

// members calls each with the members of a JSON object in their order.
func members(raw []byte, each func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return fmt.Errorf("no JSON object: %.40q", raw)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := each(name.(string), value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
