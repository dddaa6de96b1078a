package worker

import (
	"bytes"
	"encoding/json"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
)

// Output returns what is kept of a target's response: the body without surrounding space, if it is JSON of at most
// [queue.MaxPayload] bytes and [event.MaxDepth] levels; nil otherwise. If it is too large or too deep, the attempt's log says so.
func Output(body []byte, log *Log) json.RawMessage {
	if len(body) > queue.MaxPayload {
		log.Line("warn", "the response is longer than 256 KiB and was not kept")
		return nil
	}
	if body = bytes.TrimSpace(body); len(body) == 0 || !json.Valid(body) {
		return nil
	}
	if problem := event.DepthProblem(body); problem != "" {
		log.Line("warn", "the response "+problem+", and was not kept")
		return nil
	}
	return body
}
