package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/definition"
)

// This file describes what operations on definitions take and return.

func describePutDefinitions() huma.Operation {
	body := jsonBody(ref("Definitions"), definitionsExample())
	for _, kind := range typesYAML {
		body.Content[kind] = &huma.MediaType{Schema: ref("Definitions")}
	}
	return huma.Operation{
		Method: http.MethodPut, Path: v1 + "/definitions", OperationID: "putDefinitions", Tags: []string{"Definitions"},
		Summary: "Replace what is declared",
		Description: "Replaces the set in force as a whole, all or nothing, and emits an event for each object that was added, replaced or " +
			"removed. Every mistake is listed, with its line. The sections tokens, journal, history, targets, metrics and drain, and " +
			"new commands, are for the server's own file: 422.",
		Parameters: []*huma.Param{{
			Name: "dry_run", In: "query", Description: "Only tell what would change", Schema: &huma.Schema{Type: "boolean", Default: false},
		}},
		RequestBody: body,
		Responses:   answers(http.StatusOK, typeJSON, ref("DefinitionChanges")),
		Errors:      []int{400, 413, 415, 422, 503},
	}
}

func definitionsExample() any {
	return map[string]any{
		"jobs": []any{map[string]any{"path": "/topics/mail/send", "target": map[string]any{"http": map[string]any{"url": "https://example.com/send"}}}},
	}
}

// definitionSchemas describes the file, section by section.
func definitionSchemas() map[string]*huma.Schema {
	keys := func(doc string) *huma.Schema {
		list := listOf(text("Such as Job:/NAME"))
		list.Description = doc
		return list
	}
	warnings := listOf(text(""))
	warnings.Description = "Likely mistakes in schedules, such as that one never fires again"
	return map[string]*huma.Schema{
		"DefinitionChanges": object("What changed, by the keys of the objects", members{
			"added": keys("New ones"), "replaced": keys("Changed ones"), "removed": keys("Those that are gone"),
			"warnings": warnings,
		}, false, "added", "replaced", "removed"),
		"Definitions": object("What is declared, as a whole", members{
			"sources":    named("Sources by their names, whose collections are brought up to date by sync tasks", declaredSource()),
			"handlers":   listOf(declaredHandler()),
			"jobs":       listOf(declaredJob()),
			"queues":     listOf(declaredQueue()),
			"schedules":  listOf(declaredSchedule()),
			"job_chains": listOf(declaredChain()),
			"lease":      span("How long a task is held without a heartbeat; default 30s"),
		}, false),
		"Target": declaredTarget(),
	}
}

// named describes an object whose members' names are the client's own.
func named(doc string, value *huma.Schema) *huma.Schema {
	return &huma.Schema{Type: "object", Description: doc, AdditionalProperties: value}
}

// span describes a duration in a document, where it may be a number too.
func span(doc string) *huma.Schema {
	return &huma.Schema{Description: doc + ". A number is seconds; or as 200ms, 60s, 5m, 1h2m3s, 7d; or ISO 8601",
		OneOf: []*huma.Schema{{Type: "number"}, {Type: "string"}}}
}

// nameSchema describes what [definition.ValidName] takes.
func nameSchema(doc string) *huma.Schema {
	least, most := 1, definition.MaxName
	return &huma.Schema{Type: "string", Description: doc, MinLength: &least, MaxLength: &most, Pattern: `^[^/]+$`}
}

// pathSchema describes what [definition.ValidPath] takes.
func pathSchema(doc string) *huma.Schema {
	most := definition.MaxPath
	return &huma.Schema{Type: "string", Description: doc, MaxLength: &most, Pattern: `^(/[^/]+)+$`}
}

func declaredTarget() *huma.Schema {
	one := func(name string, schema *huma.Schema) *huma.Schema {
		return object("", members{name: schema}, false, name)
	}
	least := 1
	words := listOf(text(""))
	words.MinItems = &least
	words.Description = "Program and arguments; no shell. New ones are for the server's own file"
	s := oneOf(
		one("http", object("", members{"url": {Type: "string", Format: "uri"}}, false, "url")),
		one("command", words),
		one("lambda", object("", members{"arn": {Type: "string", Pattern: "^arn:"}}, false, "arn")),
		one("go", text("Name of a function of the server's program")),
		one("instances", &huma.Schema{Type: "boolean", Enum: []any{true}}),
	)
	s.Description = "Where tasks run; default: on an instance that claims them"
	return s
}

func declaredSource() *huma.Schema {
	collection := object("", members{
		"name": nameSchema(""), "schedule": text("Cron expression"), "timezone": text("IANA name; default UTC"),
		"dst": choice("Default cron", "cron", "quartz"),
	}, false, "name")
	return object("", members{
		"target": ref("Target"), "collections": listOf(collection), "timeout": span("How long one attempt may take; default a day"), "lease": span("Of its tasks"),
	}, false, "collections")
}

func declaredHandler() *huma.Schema {
	return object("A handler of events on a canvas", with(attempting(), members{
		"canvas": nameSchema(""), "space": nameSchema(""), "name": nameSchema(""),
		"interval": text("Daily, Weekly, Fortnightly, Every 1hr, Every 12hrs or Every 1min: it gets an event so long after it ran last"),
	}), false, "canvas", "space", "name")
}

func declaredJob() *huma.Schema {
	return object("What runs the tasks of a path", with(attempting(), members{
		"path": pathSchema("The job of the topic a/b is /topics/a/b"), "queue": nameSchema("Default: the queue that names the topic, or else main"),
	}), false, "path")
}

// attempting returns the members of whatever says how tasks are run.
func attempting() members {
	return members{
		"target": ref("Target"), "attempts": {Type: "integer", Description: "At least 1; -1 has no end"},
		"retry_delay": span("The pause between attempts"),
		"on_error":    choice("Whether a task whose target throws an error is tried again or rejected", "retry", "reject"),
		"timeout":     span("How long one attempt may take; default a day"), "lease": span("How long it is held without a heartbeat"),
	}
}

func with(all, more members) members {
	for name, schema := range more {
		all[name] = schema
	}
	return all
}

func declaredQueue() *huma.Schema {
	return object("How tasks wait, and how many run", members{
		"name":         nameSchema(""),
		"topics":       listOf(text("A topic; a/* all below a, a/. its children, * all")),
		"type":         choice("Default unordered", "unordered", "ordered", "round-robin"),
		"max_parallel": {Type: "number", Description: "From 1, a share of the cores, such as 0.5, or -1 for as many as there are; default: no limit"},
		"ranking":      {Type: "integer", Default: 0, Description: "Of several queues that name a topic, the one with the highest ranking gets its jobs; among equals the first"},
		"retries":      whole("Default 10; -1 has no end", -1),
		"retry_delay":  span("Default 2s"),
		"keep_jobs":    {Type: "boolean", Description: "Whether the history keeps jobs that succeeded"},
		"weights":      named("By fairness key, or by a pattern: /a/* one level, /a/** all below", whole("", 1)),
	}, false, "name")
}

func declaredSchedule() *huma.Schema {
	return object("Tasks at regular times", members{
		"name": nameSchema(""), "cron": text("6 or 7 fields are Quartz, 5 classic cron; or @daily and the like, or @every 90s. Either this or date"),
		"date":     dateTime("The only time at which it fires; in a new schedule it must not be past"),
		"timezone": text("IANA name; default UTC"),
		"dst":      choice("Default cron", "cron", "quartz"), "job": pathSchema("A collection's, a handler's or a job's path, or a topic's"),
		"payload": {Description: "What its tasks are given: any JSON"},
		"misfire": choice("Which of the ticks that were missed are made later: none, the newest, or all up to 1,000; default once", "skip", "once", "all"),
		"overlap": choice("What a tick's task does while that of an earlier tick runs: runs too, is dropped, or waits; default allow", "allow", "skip", "queue"),
	}, false, "name", "job")
}

func declaredChain() *huma.Schema {
	node := object("A station; without a job it is an end", members{
		"id": nameSchema(""), "job": pathSchema(""), "next": nameSchema("Where an order goes on"), "error": nameSchema("Where it goes after a failure"),
	}, false, "id")
	return object("A job chain: the way of orders through several jobs", members{"path": pathSchema("Without a comma"), "nodes": listOf(node)}, false, "path", "nodes")
}
