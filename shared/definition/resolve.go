package definition

import (
	"cmp"
	"strings"
	"time"
)

// DefaultLease is how long a task is held without a heartbeat if nothing else is said.
const DefaultLease = 30 * time.Second

// JobOf answers what runs the tasks of a path: a collection of a source, a handler, or a job, with their defaults. ok is
// false where nothing is declared.
func (s *Set) JobOf(path string) (job Job, ok bool) {
	switch root, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); root {
	case "sources":
		job, ok = s.collection(path, rest)
	case "canvases":
		job, ok = s.handler(path)
	default:
		job, ok = s.job(path)
	}
	job.Lease = cmp.Or(job.Lease, s.Lease, DefaultLease)
	return job, ok
}

func (s *Set) collection(path, rest string) (Job, bool) {
	for name, source := range s.Sources {
		collection, below := strings.CutPrefix(rest, name+"/")
		if !below {
			continue
		}
		for _, c := range source.Collections {
			if c.Name == collection {
				return Job{
					Path: path, Target: source.Target, Queue: SyncQueue, Attempts: 1,
					Timeout: source.Timeout, Lease: source.Lease,
				}, true
			}
		}
	}
	return Job{}, false
}

func (s *Set) handler(path string) (Job, bool) {
	for _, h := range s.Handlers {
		if h.Path() != path {
			continue
		}
		return Job{
			Path: path, Target: h.Target, Queue: EventQueue, Attempts: cmp.Or(h.Attempts, 3),
			RetryDelay: cmp.Or(h.RetryDelay, 5*time.Minute), OnError: h.OnError, Timeout: h.Timeout, Lease: h.Lease,
		}, true
	}
	return Job{}, false
}

func (s *Set) job(path string) (Job, bool) {
	for _, j := range s.Jobs {
		if j.Path == path {
			return j, true
		}
	}
	return Job{}, false
}

// Path answers the path of the handler's job.
func (h Handler) Path() string { return "/canvases/" + h.Canvas + "/" + h.Space + "/" + h.Name }

// CollectionPath answers the path of a collection's job.
func CollectionPath(source, collection string) string { return "/sources/" + source + "/" + collection }

// QueueOf answers the queue of that name as declared, or one of the queues that are always there, or one by default.
func (s *Set) QueueOf(name string) Queue {
	for _, q := range s.Queues {
		if q.Name == name {
			return q.withDefaults()
		}
	}
	return Queue{Name: name}.withDefaults()
}

func (q Queue) withDefaults() Queue {
	if q.Type == "" && q.Name == EventQueue {
		q.Type = RoundRobin
	}
	q.Type = cmp.Or(q.Type, Unordered)
	if q.Type == Ordered {
		q.MaxParallel = 1
	}
	return q
}
