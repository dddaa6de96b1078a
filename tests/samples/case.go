package samples

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace/millrace/shared/api"
)

// Case is one sample and its expected answer.
type Case struct {
	Name   string // of the file, without .json
	Status int    // of the HTTP answer; 0: a tick or a batch of messages; -1: an invocation that fails
	Want   string // part of the answer's body, of the answer where there is none, or of the error
}

// Tokens are what the samples authenticate with, by the secrets "sample" and "sample-ROLE".
func Tokens() []api.Token {
	return []api.Token{
		api.NewToken("admin", api.Admin, "sample"),
		api.NewToken("viewer", api.Viewer, "sample-viewer"),
		api.NewToken("producer", api.Producer, "sample-producer"),
	}
}

// Order is the order of the functions in which the samples make sense: what is read must have been emitted.
func Order() []string {
	return []string{"emit", "read-after", "snapshot", "enqueue-task", "tasks", "worker", "cron", "sweep"}
}

// Of answers the cases of a function, in the order in which they make sense.
func Of(function string) []Case {
	return map[string][]Case{
		"emit": {
			{"one", 201, `{"eventIds":[`},
			{"batch", 201, `{"eventIds":[`},
			{"once", 201, `{"eventIds":[`},
			{"binary", 201, `{"eventIds":[`},
			{"malformed", 400, `"code":"invalid"`},
			{"empty", 400, `"code":"invalid"`},
			{"null-key", 400, `body[0].key`},
			{"built-in-type", 422, `body[0].TYPE`},
			{"not-json", 415, `"code":"unsupported_media_type"`},
			{"no-token", 401, `"code":"unauthorized"`},
			{"forbidden", 403, `"code":"forbidden"`},
		},
		"read-after": {
			{"after", 200, `"variables":{"state":"paid"}`},
			{"limit", 200, `{"TYPE":"NonEmpty"`},
			{"timeout", 200, `{"TYPE":"Empty"`},
			{"iso-timeout", 200, `"TYPE":"OfferMade"`},
			{"newest", 200, `{"TYPE":"NonEmpty"`},
			{"custom-type", 200, `"TYPE":"OfferRemoved"`},
			{"cloudevents", 200, `"specversion":"1.0"`},
			{"no-after", 400, `query.after`},
			{"limit-zero", 400, `query.limit`},
			{"bad-timeout", 400, `query.timeout`},
			{"unknown-type", 400, `OrderVanished`},
			{"no-token", 401, `"code":"unauthorized"`},
			{"forbidden", 403, `"code":"forbidden"`},
		},
		"snapshot": {
			{"objects", 200, `"key":"/offers/2"`},
			{"one-object", 200, `"price":8`},
			{"objects-below", 200, `"key":"/offers/2"`},
			{"all-objects", 200, `"key":"/orders/1"`},
			{"orders", 200, `{"orders":[]`},
			{"events-of-object", 200, `"TYPE":"OfferMade"`},
			{"bad-path", 400, `body.path`},
			{"unknown-path", 404, `"code":"not_found"`},
			{"wrong-method", 405, `"code":"method_not_allowed"`},
			{"no-token", 401, `"code":"unauthorized"`},
			{"ready", 200, `"ok"`},
		},
		"enqueue-task": {
			{"sync", 201, `{"task_id":"shop_orders_`},
			{"seed-path", 201, `{"task_id":"shop_customers_`},
			{"handler-event", 202, `"status":"new"`},
			{"handler-events", 202, `[{"id":`},
			{"missing-handler", 202, `"status":"missing"`},
			{"unknown-source", 404, `"code":"not_found"`},
			{"bad-priority", 400, `query.priority`},
			{"no-value", 400, `body.`},
			{"no-token", 401, `"code":"unauthorized"`},
			{"forbidden", 403, `"code":"forbidden"`},
		},
		"tasks": {
			{"list", 200, `{"tasks":[`},
			{"seed-path", 200, `{"tasks":[`},
			{"handlers", 200, `"name":"welcome"`},
			{"handler-events", 200, ``},
			{"pause", 204, ``},
			{"unpause", 204, ``},
			{"no-start", 400, `query.start`},
			{"unknown-task", 404, `"code":"not_found"`},
			{"unknown-logs", 404, `"code":"not_found"`},
			{"cancel-unknown", 404, `"code":"not_found"`},
			{"why-unknown", 404, `"code":"not_found"`},
			{"no-token", 401, `"code":"unauthorized"`},
			{"forbidden", 403, `"code":"forbidden"`},
		},
		"worker": {
			{"rings", 0, `{"batchItemFailures":[]}`},
			{"one-is-no-ring", 0, `{"batchItemFailures":[{"itemIdentifier":"059f36b4-87a3-44ab-83d2-661975830a7d"}]}`},
			{"not-a-batch", -1, "worker takes"},
		},
		"cron": {
			{"tick", 0, ""},
			{"not-a-tick", -1, "cron takes"},
		},
		"define": {
			{"show", 200, `{`},
			{"put", 200, `"added"`},
			{"put-yaml", 200, `"added"`},
			{"dry-run", 200, `"added"`},
			{"two-mistakes", 400, `"errors":[`},
			{"command", 422, `"code"`},
			{"no-token", 401, `"code":"unauthorized"`},
			{"forbidden", 403, `"code":"forbidden"`},
		},
		"sweep": {
			{"tick", 0, ""},
			{"scheduled-event", 0, ""},
			{"not-a-tick", -1, "sweep takes"},
		},
	}[function]
}

// Check answers what is wrong with the outcome of an invocation: its answer, or the text of its error.
func (c Case) Check(answer []byte, failure string) error {
	switch {
	case c.Status < 0 && !strings.Contains(failure, c.Want):
		return fmt.Errorf("failure %q, want one with %q", failure, c.Want)
	case c.Status >= 0 && failure != "":
		return fmt.Errorf("failure %q, want none", failure)
	case c.Status == 0 && !strings.Contains(compact(answer), c.Want):
		return fmt.Errorf("answer %s, want one with %s", answer, c.Want)
	case c.Status <= 0:
		return nil
	}
	return c.checkHTTP(answer)
}

// compact answers JSON without the spaces that SAM puts in.
func compact(answer []byte) string {
	var compacted bytes.Buffer
	if json.Compact(&compacted, answer) != nil {
		return string(answer)
	}
	return compacted.String()
}

func (c Case) checkHTTP(answer []byte) error {
	var out events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(answer, &out); err != nil {
		return fmt.Errorf("answer %s: %w", answer, err)
	}
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			return fmt.Errorf("answer %s: %w", answer, err)
		}
	}
	if out.StatusCode != c.Status || !strings.Contains(string(body), c.Want) {
		return fmt.Errorf("answer %d %s, want %d with %s", out.StatusCode, body, c.Status, c.Want)
	}
	return nil
}
