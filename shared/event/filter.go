package event

import "strings"

// Filter selects what a follower sees: events of the selected types, about the selected objects.
type Filter struct {
	// Types are the event types; restrict them to Family with [Selection.Within].
	Types Selection
	// Family says how the keys are read; "" means that keys do not matter, so that Paths is ignored.
	Family Family
	// Paths selects the objects by their paths.
	Paths PathQuery
}

// Match reports whether the filter selects the event. It does not allocate.
func (f *Filter) Match(e *Event) bool {
	return f.Types.Match(e.Type) && (f.Family == "" || f.Paths.MatchKey(f.Family, e.Key))
}

// OmitsKey reports whether the response leaves keys out, because only one key is possible: as in JobScheduler's event API,
// for a query of a single path. Of orders that path needs the order's id, "/CHAIN,ORDER". Events of tasks and of file
// based objects always have keys, since a job has several tasks and a path several file based objects.
func (f *Filter) OmitsKey() bool {
	path, single := f.Paths.Single()
	switch f.Family {
	case "", TaskEvent, FileBasedEvent:
		return false
	case OrderEvent:
		return single && strings.Contains(path, ",")
	default:
		return single
	}
}

// MatchKey reports whether the query selects the object that a key of that family names (as in JobScheduler's event API):
// orders by the path of their chain, or by all of "/CHAIN,ORDER"; file based objects by what follows the type in
// "Job:/NAME"; tasks by the path of their job; others by the whole key. It does not allocate.
func (q PathQuery) MatchKey(family Family, key Key) bool {
	switch family {
	case OrderEvent:
		chain, _, _ := strings.Cut(key.Path, ",")
		return q.Match(chain) || q.matchObject(strings.TrimPrefix(key.Path, "/"))
	case FileBasedEvent:
		_, path, _ := strings.Cut(key.Path, ":")
		return q.Match(path)
	default:
		return q.Match(key.Path)
	}
}
