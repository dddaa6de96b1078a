package samples

// journalCases answers the cases of functions of the journal.
func journalCases() map[string][]Case {
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
	}
}

// taskCases answers the cases of functions of tasks, and of those that look after everything.
func taskCases() map[string][]Case {
	return map[string][]Case{
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
		"worker": {
			{"rings", 0, `{"batchItemFailures":[]}`},
			{"one-is-no-ring", 0, `{"batchItemFailures":[{"itemIdentifier":"059f36b4-87a3-44ab-83d2-661975830a7d"}]}`},
			{"not-a-batch", -1, "worker takes"},
		},
		"cron": {
			{"tick", 0, ""},
			{"not-a-tick", -1, "cron takes"},
		},
		"sweep": {
			{"tick", 0, ""},
			{"scheduled-event", 0, ""},
			{"not-a-tick", -1, "sweep takes"},
		},
	}
}
