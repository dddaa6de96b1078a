package host

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
)

// cloudEvent holds the attributes of CloudEvents 1.0 that triggers use.
type cloudEvent struct {
	ID, Type string
	Time     time.Time
	Data     []byte
	Extra    map[string]string // type, source, subject and extensions, by name
}

// cloudEvents reads the body in the mode that the headers declare: structured, batched or binary.
func cloudEvents(header http.Header, body []byte) ([]cloudEvent, error) {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type")) // a type that cannot be parsed is neither of the two
	switch {
	case kind == "application/cloudevents+json":
		event, err := structured(body)
		return []cloudEvent{event}, err
	case kind == "application/cloudevents-batch+json":
		return batched(body)
	case header.Get("Ce-Specversion") != "":
		return binary(header, body)
	}
	return nil, errors.New("not a CloudEvent: want Content-Type application/cloudevents+json, or the headers ce-specversion, ce-id, ce-source and ce-type")
}

func batched(body []byte) ([]cloudEvent, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("the batch is not a JSON array: %w", err)
	}
	all := make([]cloudEvent, len(raw))
	for n, one := range raw {
		var err error
		if all[n], err = structured(one); err != nil {
			return nil, fmt.Errorf("event %d of the batch: %w", n, err)
		}
	}
	return all, nil
}

// structured reads the JSON format of CloudEvents 1.0.
func structured(body []byte) (cloudEvent, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return cloudEvent{}, fmt.Errorf("the event is not a JSON object: %w", err)
	}
	data, err := dataOf(members)
	if err != nil {
		return cloudEvent{}, err
	}
	attributes := map[string]string{}
	for name, value := range members {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value) // extensions may be numbers and booleans
		}
		attributes[name] = text
	}
	return newCloudEvent(attributes, data)
}

// dataOf removes the data from the members and returns it: JSON as it is, the content of a string, or decoded Base64.
func dataOf(members map[string]json.RawMessage) ([]byte, error) {
	plain, encoded := members["data"], members["data_base64"]
	delete(members, "data")
	delete(members, "data_base64")
	var text string
	if encoded != nil {
		if err := json.Unmarshal(encoded, &text); err != nil {
			return nil, errors.New("data_base64 is not a string")
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("data_base64: %w", err)
		}
		return data, nil
	}
	if bytes.HasPrefix(plain, []byte{'"'}) && json.Unmarshal(plain, &text) == nil {
		return []byte(text), nil
	}
	return plain, nil
}

// binary reads the mode in which attributes are headers and the body is the data.
func binary(header http.Header, body []byte) ([]cloudEvent, error) {
	attributes := map[string]string{}
	for name, values := range header {
		if attribute, is := strings.CutPrefix(name, "Ce-"); is {
			attributes[strings.ToLower(attribute)] = values[0]
		}
	}
	event, err := newCloudEvent(attributes, body)
	return []cloudEvent{event}, err
}

// newCloudEvent checks the attributes that every event has, and moves those with a field of their own.
func newCloudEvent(attributes map[string]string, data []byte) (cloudEvent, error) {
	for _, required := range []string{"specversion", "id", "source", "type"} {
		if attributes[required] == "" {
			return cloudEvent{}, fmt.Errorf("the CloudEvent has no %s", required)
		}
	}
	if attributes["specversion"] != "1.0" {
		return cloudEvent{}, fmt.Errorf("specversion %q is not known, want 1.0", attributes["specversion"])
	}
	event := cloudEvent{ID: attributes["id"], Type: attributes["type"], Data: data, Extra: attributes}
	if at := attributes["time"]; at != "" {
		var err error
		if event.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return cloudEvent{}, fmt.Errorf("time %q is not RFC 3339", at)
		}
	}
	for _, own := range []string{"specversion", "id", "time", "datacontenttype"} {
		delete(attributes, own)
	}
	return event, nil
}
