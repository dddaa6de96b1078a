package api

import (
	"github.com/millrace/millrace/shared/definition"
)

// This file describes what operations on definitions take and return.

func definitionsExample() any {
	return map[string]any{
		"jobs": []any{map[string]any{"path": "/topics/mail/send", "target": map[string]any{"http": map[string]any{"url": "https://example.com/send"}}}},
	}
}

func definitionChangesSchema() *schema {
	keys := func(doc string) *schema {
		list := listOf(text("Such as Job:/NAME"))
		list.Description = doc
		return list
	}
	warnings := listOf(text(""))
	warnings.Description = "Likely mistakes in schedules and job chains, such as that a schedule never fires again"
	return object("What changed, by the keys of the objects", members{
		"added": keys("New ones"), "replaced": keys("Changed ones"), "removed": keys("Those that are gone"), "warnings": warnings,
	}, false, "added", "replaced", "removed")
}

// definitionsSchema describes the file, section by section.
func definitionsSchema() *schema {
	return object("What is declared, as a whole", members{
		"sources":    named("Sources by their names, whose collections are brought up to date by sync tasks", declaredSource()),
		"handlers":   listOf(declaredHandler()),
		"jobs":       listOf(declaredJob()),
		"queues":     listOf(declaredQueue()),
		"schedules":  listOf(declaredSchedule()),
		"job_chains": listOf(declaredChain()),
		"locks":      listOf(declaredLock()),
		"lease":      span("How long a task is held without a heartbeat; default 30s"),
	}, false)
}

// nameSchema describes what [definition.ValidName] takes.
func nameSchema(doc string) *schema {
	name := shortText(doc)
	name.Pattern = `^[^/]+$`
	return name
}

// pathSchema describes what [definition.ValidPath] takes.
func pathSchema(doc string) *schema {
	return &schema{Type: "string", Description: doc, MaxLength: definition.MaxPath, Pattern: `^(/[^/]+)+$`}
}

func targetSchema() *schema {
	one := func(name string, schema *schema) *schema {
		return object("", members{name: schema}, false, name)
	}
	words := listed(text(""), 0)
	words.Description = "Program and arguments; no shell. New ones are for the server's own file"
	s := oneOf(
		one("http", object("", members{"url": {Type: "string", Format: "uri"}}, false, "url")),
		one("command", words),
		one("lambda", object("", members{"arn": {Type: "string", Pattern: "^arn:"}}, false, "arn")),
		one("go", text("Name of a function of the server's program")),
		one("instances", &schema{Type: "boolean", Enum: []any{true}}),
	)
	s.Description = "Where tasks run; default: on an instance that claims them"
	return s
}

func declaredSource() *schema {
	collection := object("", members{
		"name": nameSchema(""), "schedule": text("Cron expression"), "timezone": text("IANA name; default UTC"),
		"dst": choice("Default cron", "cron", "quartz"),
	}, false, "name")
	return object("", members{
		"target": ref("Target"), "collections": listOf(collection), "timeout": span("How long one attempt may take; default a day"), "lease": span("Of its tasks"),
	}, false, "collections")
}

func declaredHandler() *schema {
	return object("A handler of events on a canvas", with(attempting(), members{
		"canvas": nameSchema(""), "space": nameSchema(""), "name": nameSchema(""),
		"interval": text("Daily, Weekly, Fortnightly, Every 1hr, Every 12hrs or Every 1min: it gets an event so long after it ran last"),
	}), false, "canvas", "space", "name")
}

func declaredJob() *schema {
	return object("What runs the tasks of a path", with(attempting(), members{
		"path": pathSchema("The job of the topic a/b is /topics/a/b"), "queue": nameSchema("Default: the queue that names the topic, or else main"),
		"delay_order_after_setback": setbacksSchema(),
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

func declaredQueue() *schema {
	return object("How tasks wait, and how many run", members{
		"name":         nameSchema(""),
		"topics":       listOf(text("A topic; a/* all below a, a/. its children, * all")),
		"type":         choice("Default unordered", "unordered", "ordered", "round-robin"),
		"max_parallel": {Type: "number", Description: "From 1, a share of the cores, such as 0.5, or -1 for as many as there are; default: no limit"},
		"ranking":      {Type: "integer", Default: 0, Description: "Of several queues that name a topic, the one with the highest ranking gets its jobs; among equals the first"},
		"retries":      whole("Default 10; -1 has no end", -1),
		"retry_delay":  span("Default 2s"),
		"keep_jobs":    yesNo("Whether the history keeps jobs that succeeded"),
		"weights":      named("By fairness key, or by a pattern: /a/* one level, /a/** all below", whole("", 1)),
	}, false, "name")
}

func declaredSchedule() *schema {
	return object("Tasks at regular times", members{
		"name": nameSchema(""), "cron": text("6 or 7 fields are Quartz, 5 classic cron; or @daily and the like, or @every 90s. Either this or date"),
		"date":     dateTime("The only time at which it fires; in a new schedule it must not be past"),
		"timezone": text("IANA name; default UTC"),
		"dst":      choice("Default cron", "cron", "quartz"), "job": pathSchema("A collection's, a handler's or a job's path, or a topic's. Either this or order"),
		"order": object("The order that is made, or starts again, instead of a task", members{
			"chain": pathSchema("Of a declared job chain"), "id": orderIDSchema(),
		}, false, "chain", "id"),
		"payload": {Description: "What its tasks are given: any JSON"},
		"misfire": choice("Which of the ticks that were missed are made later: none, the newest, or all up to 1,000; default once", "skip", "once", "all"),
		"overlap": choice("What a tick's task does while that of an earlier tick runs: runs too, is dropped, or waits; default allow", "allow", "skip", "queue"),
	}, false, "name")
}
