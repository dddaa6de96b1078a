package event

import (
	"slices"
	"strings"
)

// Any is the top of the hierarchy of event types: the super type of all (as in JobScheduler's event API).
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

// Types that code outside this package writes or looks for. Package typed has Go types for their fields.
const (
	TaskAdded       = "TaskAdded"
	TaskStarted     = "TaskStarted"
	TaskEnded       = "TaskEnded"
	TaskClosed      = "TaskClosed"
	TaskRemoved     = "TaskRemoved"
	JobStateChanged = "JobStateChanged"

	OrderAdded       = "OrderAdded"
	OrderStarted     = "OrderStarted"
	OrderStepStarted = "OrderStepStarted"
	OrderStepEnded   = "OrderStepEnded"
	OrderSetBack     = "OrderSetBack"
	OrderNodeChanged = "OrderNodeChanged"
	OrderSuspended   = "OrderSuspended"
	OrderResumed     = "OrderResumed"
	OrderFinished    = "OrderFinished"
	OrderRemoved     = "OrderRemoved"
	OrderForked      = "OrderForked"
	OrderJoined      = "OrderJoined"
	OrderPrompted    = "OrderPrompted"
	OrderAnswered    = "OrderAnswered"
	OrderWaiting     = "OrderWaiting"
	OrderMoved       = "OrderMoved"

	JobChainStateChanged      = "JobChainStateChanged"
	JobChainNodeActionChanged = "JobChainNodeActionChanged"

	SchedulerStateChanged = "SchedulerStateChanged"
	SchedulerClosed       = "SchedulerClosed"

	// StreamAppended is the type of the event that an append to a stream makes.
	StreamAppended = "StreamAppended"
	// VariablesCustomEvent is the one built-in type that clients may emit, as in JobScheduler's event API.
	VariablesCustomEvent = "VariablesCustomEvent"
	// OrderStatisticsChanged is computed when it is asked for by name, and is never on the journal.
	OrderStatisticsChanged = "OrderStatisticsChanged"
)

// hierarchy is the table of the built-in types below Event. Every other name is a custom type, below CustomEvent.
var hierarchy = [...]struct {
	family Family
	types  []string
}{
	{SchedulerEvent, []string{SchedulerStateChanged, SchedulerClosed}},
	{FileBasedEvent, []string{"FileBasedAdded", "FileBasedRemoved", "FileBasedReplaced", "FileBasedActivated"}},
	{OrderEvent, []string{
		OrderAdded, OrderStarted, OrderStepStarted, OrderStepEnded, OrderSetBack, OrderNodeChanged, OrderSuspended, OrderResumed,
		OrderFinished, OrderRemoved, OrderForked, OrderJoined, OrderPrompted, OrderAnswered, OrderWaiting, OrderMoved,
	}},
	{JobChainEvent, []string{JobChainStateChanged, JobChainNodeActionChanged}},
	{TaskEvent, []string{TaskAdded, TaskStarted, TaskEnded, TaskClosed, TaskRemoved}},
	{JobEvent, []string{JobStateChanged}},
	{StreamEvent, []string{StreamAppended}},
	{CustomEvent, []string{VariablesCustomEvent}},
}

// overviews are the types of snapshots that `return` may ask for, each with the family of the events that change them.
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

// familyPrefixes are the beginnings of names that are reserved for built-in types. JobChain begins with Job.
var familyPrefixes = [...]string{"Order", "Job", "Task", "FileBased", "Scheduler", "Stream"}

// BuiltIn reports whether name is in the hierarchy: [Any], a family, or a built-in type below one.
func BuiltIn(name string) bool {
	_, found := find(name)
	return found || name == Any
}

// FamilyOf returns the family that the type belongs to; of a family, itself; of [Any], "". A name that is not built in is
// a custom type, so its family is [CustomEvent].
func FamilyOf(name string) Family {
	if name == Any {
		return ""
	}
	if family, found := find(name); found {
		return family
	}
	return CustomEvent
}

// find looks up a family, or a type below one, in the table.
func find(name string) (Family, bool) {
	family, found := families[name]
	return family, found
}

// families has the families by their own names and by those of the types below them.
var families = func() map[string]Family {
	byName := map[string]Family{}
	for _, below := range hierarchy {
		byName[string(below.family)] = below.family
		for _, name := range below.types {
			byName[name] = below.family
		}
	}
	return byName
}()

// TypesOf returns the built-in types directly below a family, in the order of the table above; of an unknown family, none.
func TypesOf(family Family) []string {
	for i := range hierarchy {
		if hierarchy[i].family == family {
			return slices.Clone(hierarchy[i].types)
		}
	}
	return nil
}

// Families returns all families, in the order of the table above.
func Families() []Family {
	all := make([]Family, len(hierarchy))
	for i := range hierarchy {
		all[i] = hierarchy[i].family
	}
	return all
}

// RemovesObject reports whether events of that type end the object that their key names: custom types whose names end in
// "Removed" do.
func RemovesObject(name string) bool {
	return strings.HasSuffix(name, "Removed") && FamilyOf(name) == CustomEvent
}
