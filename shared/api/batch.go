package api

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// typeBatch is the media type of a batch of CloudEvents (CloudEvents 1.0, JSON format, 4).
const typeBatch = "application/cloudevents-batch+json"

// appendBatch appends what was read as a batch of CloudEvents. A torn one is a single CloudEvent of type Torn, as
// nothing else can be said in a batch.
func appendBatch(dst []byte, answer *journal.Answer, stamp event.ID, withKey bool) []byte {
	dst = append(dst, '[')
	if answer.Torn {
		dst = appendCloudEvent(dst, &event.Event{ID: stamp, Type: "Torn"}, withKey)
	}
	for i := range answer.Events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCloudEvent(dst, &answer.Events[i], withKey)
	}
	return append(dst, ']')
}

// appendCloudEvent appends an event in its envelope: id is the EventId, data the event as everywhere.
func appendCloudEvent(dst []byte, e *event.Event, withKey bool) []byte {
	dst = append(dst, `{"specversion":"1.0","id":"`...)
	dst = strconv.AppendInt(dst, int64(e.ID), 10)
	dst = append(dst, `","source":"/jobscheduler/master/api/event","type":`...)
	dst, _ = jsontext.AppendQuote(dst, e.Type) // names are ASCII
	if !e.Key.IsZero() {
		dst = append(dst, `,"subject":`...)
		dst, _ = jsontext.AppendQuote(dst, subject(e.Key)) // keys are UTF-8
	}
	dst = append(dst, `,"time":`...)
	dst = event.AppendTime(dst, e.ID.Time())
	dst = append(dst, `,"datacontenttype":"application/json","data":`...)
	dst = e.AppendJSON(dst, withKey)
	return append(dst, '}')
}

// subject is a key in one string: of a task, its id below its job.
func subject(k event.Key) string {
	if k.TaskID == "" {
		return k.Path
	}
	return k.Path + "/" + k.TaskID
}
