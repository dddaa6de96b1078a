package event

import (
	"slices"
	"strings"
)

// Any is the top of the hierarchy of event types: the super type of all (seed 000).
const Any = "Event"

// Family is a type directly below [Any]. It says what the keys of its events look like.
type Family string

// The families, with the keys of their events.
const (
	SchedulerEvent Family = "SchedulerEvent" // none
	FileBasedEvent Family = "FileBasedEvent" // "Job:/NAME"; also JobChain, Queue, Schedule, Source, Handler
	OrderEvent     Family = "OrderEvent"     // "/CHAIN,ORDER"
	JobChainEvent  Family = "JobChainEvent"  // "/CHAIN"
	TaskEvent      Family = "TaskEvent"      // {"jobPath":"/JOB","taskId":"…"}
	JobEvent       Family = "JobEvent"       // "/JOB"
	StreamEvent    Family = "StreamEvent"    // the stream's name
	CustomEvent    Family = "CustomEvent"    // what the emitter says
)

// Types that code outside this package writes or looks for.
const (
	// StreamAppended tells that an event was appended to a stream (seed 003).
	StreamAppended = "StreamAppended"
	// VariablesCustomEvent is the one built-in type that clients may emit, as in the original of seed 000.
	VariablesCustomEvent = "VariablesCustomEvent"
	// OrderStatisticsChanged is asked for by name only and is never on the journal (seed 000).
	OrderStatisticsChanged = "OrderStatisticsChanged"
)

// hierarchy is the table of the built-in types below Event. Every other name is a custom type, below CustomEvent.
var hierarchy = [...]struct {
	family Family
	types  []string
}{
	{SchedulerEvent, []string{"SchedulerStateChanged", "SchedulerClosed"}},
	{FileBasedEvent, []string{"FileBasedAdded", "FileBasedRemoved", "FileBasedReplaced", "FileBasedActivated"}},
	{OrderEvent, []string{
		"OrderAdded", "OrderStarted", "OrderStepStarted", "OrderStepEnded", "OrderSetBack", "OrderNodeChanged",
		"OrderSuspended", "OrderResumed", "OrderFinished", "OrderRemoved",
	}},
	{JobChainEvent, []string{"JobChainStateChanged", "JobChainNodeActionChanged"}},
	{TaskEvent, []string{"TaskAdded", "TaskStarted", "TaskEnded", "TaskClosed", "TaskRemoved"}},
	{JobEvent, []string{"JobStateChanged"}},
	{StreamEvent, []string{StreamAppended}},
	{CustomEvent, []string{VariablesCustomEvent}},
}

// overviews are the types of snapshots that `return` may ask for, with the family of the events that change them.
var overviews = [...]struct {
	name   string
	family Family
}{
	{"OrderOverview", OrderEvent},
	{"JobOverview", JobEvent},
	{"JobChainOverview", JobChainEvent},
	{"TaskOverview", TaskEvent},
	{"FileBasedOverview", FileBasedEvent},
	{"ObjectOverview", CustomEvent},
}

// familyPrefixes begin the names that are kept for built-in types. JobChain begins with Job.
var familyPrefixes = [...]string{"Order", "Job", "Task", "FileBased", "Scheduler", "Stream"}

// BuiltIn reports whether name is in the hierarchy: [Any], a family, or a built-in type below one.
func BuiltIn(name string) bool {
	_, found := find(name)
	return found || name == Any
}

// FamilyOf answers the family that the type belongs to; of a family, itself; of [Any], none (""). A name that is not
// built in is a custom type, so its family is [CustomEvent].
func FamilyOf(name string) Family {
	if name == Any {
		return ""
	}
	if family, found := find(name); found {
		return family
	}
	return CustomEvent
}

// find looks a family or a type below one up in the table.
func find(name string) (Family, bool) {
	for i := range hierarchy {
		if string(hierarchy[i].family) == name || slices.Contains(hierarchy[i].types, name) {
			return hierarchy[i].family, true
		}
	}
	return "", false
}

// Supers answers the types above name, the nearest first: of OrderStarted, OrderEvent and Event; of Event, none.
func Supers(name string) []string {
	family := FamilyOf(name)
	switch {
	case name == Any:
		return nil
	case name == string(family):
		return []string{Any}
	default:
		return []string{string(family), Any}
	}
}

// TypesOf answers the built-in types directly below a family, in the order of api.md; of an unknown family, none.
func TypesOf(family Family) []string {
	for i := range hierarchy {
		if hierarchy[i].family == family {
			return slices.Clone(hierarchy[i].types)
		}
	}
	return nil
}

// Families answers all families, in the order of api.md.
func Families() []Family {
	families := make([]Family, len(hierarchy))
	for i := range hierarchy {
		families[i] = hierarchy[i].family
	}
	return families
}

// RemovesObject reports whether an event of that custom type ends the object that its key names, as every type does
// whose name ends in "Removed".
func RemovesObject(name string) bool {
	return strings.HasSuffix(name, "Removed") && FamilyOf(name) == CustomEvent
}
