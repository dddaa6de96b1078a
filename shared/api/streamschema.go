package api

import (
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/stream"
)

// This file describes what the operations on streams take and return.

func streamParam() *param {
	p := pathParam("stream", "The stream's name, URL-encoded")
	p.Schema.MaxLength = stream.MaxName
	return p
}

func idHeader(name, doc string) *param {
	return &param{Name: name, In: "header", Description: doc, Required: true, Schema: uuidSchema("")}
}

func uuidSchema(doc string) *schema {
	return &schema{Type: "string", Format: "uuid", Description: doc}
}

// streamEventMembers are those of every event of a stream, with what it says of itself.
func streamEventMembers(itself *schema) members {
	some := func(doc string) *schema { return textOf(doc, 1, 0) }
	return members{
		"event": itself,
		"system": object("Where it happened", members{
			"id": uuidSchema(""), "name": some(""), "time": some("ISO 8601, on the source system"), "timezone": some("Of the IANA database"),
		}, false, "id", "name", "time", "timezone"),
		"trigger": object("Why it happened", members{
			"type": choice("", "automatic", "manual"), "name": some("A script's path, or a user's name"),
		}, false, "type", "name"),
		"payload": object("Up to 256 KiB and 100 levels", nil, true),
	}
}

func streamEventSchema() *schema {
	version := between("Of its structure", 1, int64(event.MaxID))
	version.Default = 1
	itself := object("", members{"name": textOf("A fact, in past tense", 1, stream.MaxName), "version": version}, false, "name")
	return object("An event to append", streamEventMembers(itself), false, "event", "system", "trigger", "payload")
}

func streamEventExample() any {
	return map[string]any{
		"event": map[string]any{"name": "Subscription initiated", "version": 1},
		"system": map[string]any{
			"id": "2480b859-e08a-4414-9c7d-003bc1a4c238", "name": "codello alvine", "time": "2021-03-10T22:13:32Z", "timezone": "Europe/Berlin",
		},
		"trigger": map[string]any{"type": "automatic", "name": "/path/to/script.php"},
		"payload": map[string]any{"subscriptionId": "4711"},
	}
}

func appendedSchema() *schema {
	return object("Where an event went", members{
		"id": uuidSchema("The event's"), "stream": text(""), "name": text(""), "sequence": whole("Of its name, from 1 without a gap", 1),
		"eventId": eventID("Of the event StreamAppended that the journal has of it"),
	}, false, "id", "stream", "name", "sequence", "eventId")
}

func storedEventSchema() *schema {
	itself := object("", members{"id": uuidSchema(""), "name": text(""), "version": whole("", 1)}, false, "id", "name", "version")
	return object("An event of a stream", with(streamEventMembers(itself), members{
		"sequence": whole("Of its name, from 1 without a gap", 1), "eventId": eventID("Of the event StreamAppended that the journal has of it"),
		"stream": text("The stream's name; only where an event is asked for by its UUID"),
	}), false, "event", "system", "trigger", "payload", "sequence", "eventId")
}

func streamSchema() *schema {
	name := object("", members{"name": text(""), "sequence": whole("Of the last event, and so how many there are", 1)}, false, "name", "sequence")
	return object("A stream", members{
		"stream": text(""), "producer": uuidSchema("Who owns it"), "events": whole("How many there are", 1), "names": listOf(name),
		"more_names": yesNo("There are more names: ask for the stream itself, and go on by its Link"),
	}, false, "stream", "producer", "events", "names")
}

func streamConsumerSchema() *schema {
	return object("How far a consumer is with an event name", members{
		"consumer": uuidSchema(""), "stream": text(""), "eventName": text(""), "offset": whole("The last sequence acknowledged", 0),
		"behind": whole("Events not acknowledged yet", 0), "consumedPercentage": {Type: "number"}, "movedAt": dateTime("When the offset moved last"),
	}, false, "consumer", "stream", "eventName", "offset", "behind", "consumedPercentage", "movedAt")
}
