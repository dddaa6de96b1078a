package api

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/projection"
)

// This file describes the overviews of orders, jobs and job chains, and the statistics of orders.

// elementSchema describes an element of a kind's snapshots.
func (k *kind) elementSchema() *schema {
	switch k.name {
	case "order":
		return orderOverviewSchema()
	case "job":
		return jobOverviewSchema()
	case "jobChain":
		return jobChainOverviewSchema()
	default:
		return object("One of the "+k.what, members{"TYPE": constant(k.overview)}, true, "TYPE")
	}
}

func orderOverviewSchema() *schema {
	state := object("What it is doing", members{
		"TYPE": choice("", projection.NotPlanned, projection.Planned, projection.Due, projection.WaitingInTask, projection.InTaskProcess,
			projection.SetBack, projection.WaitingForResource, projection.Blacklisted),
		"at":     dateTime("The earliest start of its step, where there is one. Planned stays until the order starts"),
		"taskId": text("The task of its step, while that is under way"),
	}, false, "TYPE")
	obstacle := object("", members{
		"TYPE":  choice("", "Suspended", "Setback", "Prompt", "Wait", "Join"),
		"until": dateTime("When it ends by itself, where it does"),
	}, false, "TYPE")
	obstacles := listOf(obstacle)
	obstacles.Description = "What keeps it from going on"
	value := oneOf(text(""), &schema{Type: "number"}, yesNo(""), &schema{Type: "array"})
	all := members{
		"TYPE": constant(projection.OrdersName), "path": text("/CHAIN,ORDER"), "nodeId": text("The node where it is"), "orderProcessingState": state,
		"obstacles": obstacles, "version": whole("Of its chain", 1), "variables": named("", value),
	}
	required := slices.Sorted(maps.Keys(all))
	return object("An order", with(all, members{"startedAt": dateTime("When its first step began")}), false, required...)
}

func jobChainOverviewSchema() *schema {
	action := object("", members{
		"nodeId": text(""), "action": choice("", definition.ActionProcess, definition.ActionStop, definition.ActionNextState),
	}, false, "nodeId", "action")
	nodes := listOf(action)
	nodes.Description = "The nodes whose action an operator has changed, or is declared as another than process"
	declared := listOf(text(""))
	declared.Description = "The ids of those nodes whose action is the declared one"
	return object("A job chain", members{
		"TYPE": constant("JobChainOverview"), "path": text(""), "state": choice("", "running", "stopped"), "nodes": nodes,
		"fileBasedState": fileBasedState(), "declared": declared,
	}, false, "TYPE", "path", "state", "nodes")
}

func jobOverviewSchema() *schema {
	return object("A job that is declared, has a rule, or has had a task", members{
		"TYPE": constant("JobOverview"), "path": text(""), "state": text("run, or the rules in force"), "fileBasedState": fileBasedState(),
	}, false, "TYPE", "path", "state")
}

func fileBasedState() *schema {
	return choice("What became of its definition last; absent: it is not declared", "Added", "Replaced", "Activated")
}

// statisticsEventSchema describes the event that is computed on request.
func statisticsEventSchema() *schema {
	return object("How many orders are doing what: one event, which is not on the journal", members{
		"eventId": eventID("As of which they are counted: wait for the next change after it"), "TYPE": constant("OrderStatisticsChanged"),
		"orderStatistics": ref("OrderStatistics"),
	}, false, "eventId", "TYPE", "orderStatistics")
}

func orderStatisticsSchema() *schema {
	all := members{
		"total": whole("All of them", 0), "notPlanned": whole("Without a start", 0), "planned": whole("Waiting for their start", 0),
		"due": whole("Their step waits for a worker, or for the delay of its node", 0), "started": whole("Their first step has begun", 0),
		"inTask": whole("In a step, which runs or waits for another attempt", 0), "inTaskProcess": whole("In a step that runs", 0),
		"setback": whole("Set back", 0), "waitingForResource": whole("Waiting for what is not there", 0), "suspended": whole("Suspended, at their end too", 0),
		"blacklisted": whole("Kept at their end", 0), "permanent": whole("Made by schedules", 0), "fileOrder": whole("Made by files", 0),
	}
	return object("Numbers of orders. An order counts in each that holds for it", all, false, slices.Sorted(maps.Keys(all))...)
}
