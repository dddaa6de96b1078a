package api

import (
	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/definition"
)

// This file describes job chains as they are declared.

func declaredChain() *schema {
	return object("A job chain: the way of orders through several jobs", members{
		"path":       pathSchema("Without a comma"),
		"max_orders": whole("How many orders that have begun at the first node may be under way; default: no limit", 1),
		"timeout":    span("How long an order may take from its start to its end; default: no limit"),
		"max_visits": {Type: "integer", Minimum: 1, Default: definition.DefaultMaxVisits, Description: "How often an order may come to one node"},
		"nodes":      listed(ref("ChainNode"), 0),
	}, false, "path", "nodes")
}

// chainNodeSchema describes a node with all fields that one of its kinds has.
func chainNodeSchema() *schema {
	return object("A node of a job chain. It has one of job, fork, prompt, wait and chain; without any, it is an end", members{
		"id":     nameSchema("Once in its chain. Required but in the branches of a fork, where the default is FORK/BRANCH/NUMBER"),
		"job":    pathSchema("What runs an order's step here"),
		"fork":   forkSchema(),
		"prompt": promptSchema(),
		"wait":   waitSchema(),
		"chain":  pathSchema("Of another job chain, which the order goes through here; its nodes have the ids OUTER/INNER"),

		"next":     text("The node after success; default: the following node, or the order's end behind the last"),
		"error":    text("The node after an error; default: the order is suspended at this node"),
		"on_error": choice("With a job: what an error does before all else", definition.ErrorSetsBack, definition.ErrorSuspends),
		"on":       named("With a job: nodes by return codes, such as 7 or 7..9, that decide before success and error", text("A node")),
		"delay":    span("With a job: the pause before each step"),
		"timeout":  span("With a job: how long a step may take with all its attempts; default: no limit"),
		"action": choice("What happens to orders at first, until somebody changes it: their steps run (default), they wait, or they go on at once",
			definition.ActionProcess, definition.ActionStop, definition.ActionNextState),
		"join": joinSchema(),
		"locks": listUpTo(definition.MaxLocks, object("", members{
			"name": nameSchema("Of a declared lock"), "shared": yesNo("With other shared holders; default: alone"),
		}, false, "name")),
	}, false)
}

func forkSchema() *schema {
	branches := named("The nodes of each branch, by the branch's name", listed(ref("ChainNode"), 0))
	return object("Children of the order that run side by side: the order ID!BRANCH for each branch, or ID!INDEX for each element of a list", members{
		"branches":  branches,
		"each":      text("The variable with the list"),
		"job":       pathSchema("With each: what runs the step of a child; its node is FORK/each"),
		"on_failed": choice("What happens to the others when a child fails, or when the join is decided: they go on by themselves, or are ended, and their running steps asked to stop; default wait", definition.FailedWaits, definition.FailedCancels),
	}, false)
}

func joinSchema() *schema {
	s := oneOf(constant("all"), object("", members{"at_least": whole("", 1)}, false, "at_least"))
	s.Description = "With a fork: how many children must succeed; default all. The order goes to next when so many have, and to error as soon as they cannot any more"
	return s
}

func promptSchema() *schema {
	return object("A question to a person", members{
		"role":     roleSchema("Who may answer"),
		"deadline": span("After which the order goes to default; default: none"),
		"default":  text("A node; required with a deadline"),
		"answers":  named("Nodes by answers; one at least", text("A node")),
	}, false, "role", "answers")
}

func roleSchema(doc string) *schema {
	s := text(doc)
	for _, role := range access.Roles() {
		s.Enum = append(s.Enum, string(role))
	}
	return s
}

func waitSchema() *schema {
	event := object("For an event that comes after the order did", members{
		"event": text("Its type"), "path": text("A query of paths, such as /a/, that its key must match; default: any"),
		"where":   {Type: "object", Additional: true, Description: "Values that its fields must have; texts may hold ${VARIABLE}, and ${id} for the order's id"},
		"timeout": span("After which the order goes to error; default: none"),
	}, false, "event")
	s := oneOf(
		event,
		object("", members{"for": span("How long")}, false, "for"),
		object("", members{"until": text("A time as in RFC 3339, or a variable with one, such as ${due}")}, false, "until"),
	)
	s.Description = "A wait for an event, or for a time"
	return s
}

func setbacksSchema() *schema {
	s := listOf(object("", members{
		"setback_count": whole("Setbacks in a row from which on this counts", 1), "delay": span("Until the step is repeated; default 0"),
		"is_maximum": yesNo("One more setback is an error; for the last only"),
	}, false, "setback_count"))
	s.Description = "How long orders wait that the job has set back, by rising counts"
	return s
}

func declaredLock() *schema {
	return object("What the steps of orders hold, alone or with others", members{
		"name": nameSchema(""), "max_shared": whole("How many shared holders there may be at once; default: no limit", 1),
	}, false, "name")
}

func orderIDSchema() *schema { return textOf("", 1, definition.MaxPath) }
