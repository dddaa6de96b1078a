package api

import (
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/projection"
)

// kind is a kind of objects: what its snapshots and events are called in JobScheduler's event API.
type kind struct {
	name     string // in paths
	plural   string // in snapshots
	overview string // the type of a snapshot's elements, and the name of the projection that makes them
	family   event.Family
	what     string // for the documentation
}

// kinds are all there are. Each is asked for in the same way.
var kinds = []kind{
	{"order", "orders", "OrderOverview", event.OrderEvent, "orders"},
	{"job", "jobs", "JobOverview", event.JobEvent, "jobs"},
	{"jobChain", "jobChains", "JobChainOverview", event.JobChainEvent, "job chains"},
	{"task", "tasks", "TaskOverview", event.TaskEvent, "tasks"},
	{"fileBased", "fileBaseds", "FileBasedOverview", event.FileBasedEvent, "definitions"},
	{"object", "objects", "ObjectOverview", event.CustomEvent, "objects of custom events"},
}

// offered returns a 404 if the server does not have the projection that the response needs.
func (a *API) offered(overview string) error {
	if slices.Contains(a.missing, overview) {
		return problem(CodeNotFound, "this server has no %s", overview).at("query.return")
	}
	return nil
}

// key returns the key of a snapshot's element as its events have it.
func (k *kind) key(name string) event.Key {
	if k.family == event.TaskEvent {
		return projection.TaskKey(name)
	}
	return event.Key{Path: name}
}

// kindOf returns the kind whose snapshots have that type, nil if there is none.
func kindOf(snapshots string) *kind {
	for i := range kinds {
		if kinds[i].overview == snapshots {
			return &kinds[i]
		}
	}
	return nil
}
