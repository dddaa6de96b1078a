package definition

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// DefaultLease is how long a task is held without a heartbeat unless its job or the set has a lease.
const DefaultLease = 30 * time.Second

// DefaultTimeout is how long one attempt may take unless its job has a timeout. It ends attempts that hang, and is long
// enough for almost all others.
const DefaultTimeout = 24 * time.Hour

// How failed tasks of a topic are retried unless the job or the queue has other values, as in Sling's job handling.
const (
	DefaultRetries    = 10
	DefaultRetryDelay = 2 * time.Second
)

// JobOf returns the job that runs the tasks of a path, with its defaults: that of a collection of a source, of a handler,
// or a declared one. ok is false if none is declared; the job then has the default lease and timeout, and for a topic its
// queue and retries.
func (s *Set) JobOf(path string) (job Job, ok bool) {
	index := s.indexed()
	job, ok = index.jobs[path]
	if ok {
		return job, true
	}
	job.Lease, job.Timeout = cmp.Or(s.Lease, DefaultLease), DefaultTimeout
	if topic, is := topicOf(path); is {
		job = index.ofTopic(job, topic)
	}
	return job, false
}

// LeastLease returns the shortest lease of any task that is started now, but [DefaultLease] at most.
func (s *Set) LeastLease() time.Duration { return s.indexed().least }

// StepAttempts returns how many times the step of an order at a node with that job is started at most: what the job itself declares,
// otherwise 1; -1: endless. Retries of queues are not for steps, whose chain says what an error means.
func (s *Set) StepAttempts(path string) int {
	return cmp.Or(s.indexed().declared[path], 1)
}

// QueueOf returns the queue of that name with its defaults: as declared, as a member of a declared family, or with the
// defaults only.
func (s *Set) QueueOf(name string) Queue {
	return s.indexed().queue(name)
}

// QueueForTopic returns the name of the queue that takes a topic: of the queues with a pattern that matches it the one of
// highest ranking, among equals the first; if there is none, [MainQueue]. See [MatchTopic] for patterns; {0} in the name
// of a queue is replaced by what the pattern's wildcard matches, with . for each slash.
func (s *Set) QueueForTopic(topic string) string { return s.indexed().queueForTopic(topic) }

func (x *index) queueForTopic(topic string) string {
	for _, q := range x.ranked {
		if name, ok := q.nameFor(topic); ok {
			return name
		}
	}
	return MainQueue
}

// index holds a set's parts for lookup.
type index struct {
	jobs     map[string]Job // by path, with defaults
	least    time.Duration  // see LeastLease
	declared map[string]int // attempts of jobs, by path, that say how many
	queues   map[string]Queue
	ranked   []*Queue // by ranking, highest first
	chains   map[string]*JobChain
	graphs   sync.Map // of chains by path, made when they are asked for
	set      *Set
}

func (x *index) queue(name string) Queue {
	if q, declared := x.queues[name]; declared {
		return q
	}
	if family := x.family(name); family != nil {
		q := *family
		q.Name = name
		return q.withDefaults()
	}
	return Queue{Name: name}.withDefaults()
}

// indexed returns the index. Concurrent first calls may each build it.
func (s *Set) indexed() *index {
	if made := s.index.Load(); made != nil {
		return made
	}
	made := &index{jobs: map[string]Job{}, declared: map[string]int{}, queues: map[string]Queue{}, chains: map[string]*JobChain{}, set: s}
	for i := range s.JobChains {
		made.chains[s.JobChains[i].Path] = &s.JobChains[i]
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		made.queues[q.Name], made.ranked = q.withDefaults(), append(made.ranked, q)
	}
	slices.SortStableFunc(made.ranked, func(a, b *Queue) int { return cmp.Compare(b.Ranking, a.Ranking) })
	made.addJobs()
	s.index.Store(made)
	return made
}

func (x *index) addJobs() {
	s := x.set
	add := func(j Job) {
		j.Lease, j.Timeout = cmp.Or(j.Lease, s.Lease, DefaultLease), cmp.Or(j.Timeout, DefaultTimeout)
		x.jobs[j.Path] = j
		x.least = min(x.least, j.Lease)
	}
	x.least = min(cmp.Or(s.Lease, DefaultLease), DefaultLease)
	for name, source := range s.Sources {
		for _, c := range source.Collections {
			add(source.job(name, c.Name))
		}
	}
	for _, h := range s.Handlers {
		add(h.job())
	}
	for _, j := range s.Jobs {
		add(x.withQueue(j))
		if j.Attempts != 0 {
			x.declared[j.Path] = j.Attempts
		}
	}
}

func (s Source) job(name, collection string) Job {
	return Job{
		Path: CollectionPath(name, collection), Target: s.Target, Queue: SyncQueue, Attempts: 1, Timeout: s.Timeout, Lease: s.Lease,
	}
}

func (h Handler) job() Job {
	return Job{
		Path: h.Path(), Target: h.Target, Queue: EventQueue, Attempts: cmp.Or(h.Attempts, 3),
		RetryDelay: cmp.Or(h.RetryDelay, 5*time.Minute), OnError: h.OnError, Timeout: h.Timeout, Lease: h.Lease,
	}
}

// withQueue returns a job with the values of its queue filled in.
func (x *index) withQueue(j Job) Job {
	if topic, ok := topicOf(j.Path); ok {
		return x.ofTopic(j, topic)
	}
	return j.retriedAs(x.queue(cmp.Or(j.Queue, MainQueue)))
}

// ofTopic returns the job of a topic with the defaults of Sling's job handling: 11 attempts, 2 s apart, and a thrown error
// rejects.
func (x *index) ofTopic(j Job, topic string) Job {
	j.Queue = cmp.Or(j.Queue, x.queueForTopic(topic))
	j = j.retriedAs(x.queue(j.Queue))
	j.Attempts = cmp.Or(j.Attempts, DefaultRetries+1)
	j.RetryDelay = cmp.Or(j.RetryDelay, DefaultRetryDelay)
	j.OnError = cmp.Or(j.OnError, "reject")
	return j
}

// retriedAs returns the job with attempts and delay from the queue where the job has none.
func (j Job) retriedAs(q Queue) Job {
	if q.Retries != nil && j.Attempts == 0 {
		if j.Attempts = -1; *q.Retries >= 0 {
			j.Attempts = *q.Retries + 1
		}
	}
	if q.RetryDelay != nil && j.RetryDelay == 0 {
		j.RetryDelay = *q.RetryDelay
	}
	return j
}

// Path returns the path of the handler's job.
func (h Handler) Path() string { return "/canvases/" + h.Canvas + "/" + h.Space + "/" + h.Name }

// CollectionPath returns the path of a collection's job.
func CollectionPath(source, collection string) string { return "/sources/" + source + "/" + collection }

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
