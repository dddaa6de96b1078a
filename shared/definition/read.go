package definition

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/shared/strict"
)

// serverSections are the sections of the file that configure the server itself.
var serverSections = []string{"tokens", "journal", "history", "targets", "metrics", "dashboard", "drain", "file_orders"}

// FileOnly is the error about parts that only the server's own file may have.
type FileOnly struct{ Mistakes []strict.Mistake }

// Error names the first of them.
func (e *FileOnly) Error() string {
	return "definition: only the server's own file may say this: " + e.Mistakes[0].String()
}

// Read reads a set from YAML or JSON. It returns a [*strict.Error] with every mistake if the text is malformed, and a
// [*FileOnly] if the text is right but for sections that configure the server itself.
func Read(name string, text []byte) (*Set, error) {
	set, visited := new(Set), false
	var only []strict.Mistake
	others := strict.Fields{}
	for _, section := range serverSections {
		others[section] = func(_ *strict.Document, n *strict.Node, path string) {
			only = append(only, strict.Mistake{Line: n.Line, Path: path, Message: "this section is for the server's own file"})
		}
	}
	err := strict.Read(name, text, func(d *strict.Document, n *strict.Node, _ string) {
		visited = true
		ReadSections(d, n, set, others)
		if d.OK() {
			return
		}
		for _, m := range only {
			d.Fail(&strict.Node{Line: m.Line}, m.Path, "%s", m.Message)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !visited:
		nothing := strict.Mistake{Line: 1, Message: "nothing is said; {} would declare nothing"}
		return nil, &strict.Error{Name: name, Mistakes: []strict.Mistake{nothing}}
	case len(only) > 0:
		return nil, &FileOnly{only}
	}
	set.sound = true
	return set, nil
}

// ReadSections reads the sections of a set into it. Others are the further sections that the file may have.
func ReadSections(d *strict.Document, n *strict.Node, into *Set, others strict.Fields) {
	r := &reader{set: into, names: map[string]bool{}}
	sections := strict.Fields{
		"sources":    r.sources,
		"handlers":   each(r.handler),
		"jobs":       each(r.job),
		"queues":     each(r.queue),
		"schedules":  each(r.schedule),
		"job_chains": each(r.chain),
		"locks":      each(r.lock),
		"lease":      duration(&into.Lease),

		"file_orders": each(r.fileOrder),
	}
	maps.Copy(sections, others)
	d.Object(n, "", sections)
	for _, check := range r.checks {
		check()
	}
	r.checkNested(d)
}

// reader is the state while a set is read.
type reader struct {
	set    *Set
	names  map[string]bool // those in use, after their kind and a space
	beside *Set            // the set that the object read is to become part of; nil: none
	chains []declaredChain // in the order of the document
	checks []func()        // of references to other parts, run when all parts have been read
}

// claim reserves a name of that kind; a name that is in use is a mistake.
func (r *reader) claim(d *strict.Document, n *strict.Node, path, kind, name string) {
	if name == "" {
		return // the reader of the name has reported it
	}
	if r.names[kind+" "+name] {
		d.Fail(n, path, "the %s %s is declared twice", kind, name)
	}
	r.names[kind+" "+name] = true
}

func (r *reader) declared(kind, name string) bool {
	return r.names[kind+" "+name] || r.beside != nil && r.beside.declares(kind, name)
}

// declares reports whether the set declares a queue, a job for the path, or a job chain.
func (s *Set) declares(kind, name string) bool {
	switch kind {
	case "queue":
		_, declared := s.indexed().queues[name]
		return declared
	case "job":
		_, declared := s.indexed().jobs[name]
		return declared
	case "job chain":
		_, declared := s.indexed().chains[name]
		return declared
	default:
		return false
	}
}

// finally adds a check that runs when everything has been read.
func (r *reader) finally(check func()) { r.checks = append(r.checks, check) }

func (r *reader) sources(d *strict.Document, n *strict.Node, path string) {
	r.set.Sources = map[string]Source{}
	d.Map(n, path, "the sources by their names", func(key, value *strict.Node, at string) {
		checkName(d, key, at, key.Value)
		r.set.Sources[key.Value] = r.source(d, value, at, key.Value)
	})
}

func (r *reader) source(d *strict.Document, n *strict.Node, path, name string) (s Source) {
	d.Object(n, path, strict.Fields{
		"target": target(&s.Target),
		"collections": each(func(d *strict.Document, n *strict.Node, path string) {
			s.Collections = append(s.Collections, r.collection(d, n, path, name))
		}),
		"timeout": duration(&s.Timeout),
		"lease":   duration(&s.Lease),
	})
	d.Need(n, path, "collections")
	return s
}

func (r *reader) collection(d *strict.Document, n *strict.Node, path, source string) (c Collection) {
	d.Object(n, path, strict.Fields{
		"name":     name(&c.Name),
		"schedule": cronExpression(&c.Schedule),
		"timezone": zone(&c.Timezone),
		"dst":      word(&c.DST, "cron", "quartz"),
	})
	d.Need(n, path, "name")
	if c.Name != "" {
		r.claim(d, n, path, "collection", source+"/"+c.Name)
		r.names["job "+CollectionPath(source, c.Name)] = true
	}
	return c
}

func (r *reader) handler(d *strict.Document, n *strict.Node, path string) {
	var h Handler
	d.Object(n, path, strict.Fields{
		"canvas":      name(&h.Canvas),
		"space":       name(&h.Space),
		"name":        name(&h.Name),
		"target":      target(&h.Target),
		"interval":    interval(&h.Interval),
		"attempts":    attempts(&h.Attempts),
		"retry_delay": duration(&h.RetryDelay),
		"on_error":    word(&h.OnError, "retry", "reject"),
		"timeout":     duration(&h.Timeout),
		"lease":       duration(&h.Lease),
	})
	d.Need(n, path, "canvas", "space", "name")
	if h.Canvas != "" && h.Space != "" && h.Name != "" {
		r.claim(d, n, path, "handler", h.Canvas+"/"+h.Space+"/"+h.Name)
		r.names["job "+h.Path()] = true
	}
	r.set.Handlers = append(r.set.Handlers, h)
}

func (r *reader) job(d *strict.Document, n *strict.Node, path string) {
	var j Job
	d.Object(n, path, strict.Fields{
		"path": jobPath(&j.Path),
		"queue": func(d *strict.Document, n *strict.Node, path string) {
			name(&j.Queue)(d, n, path)
			r.finally(func() { r.checkQueue(d, n, path, j.Queue) })
		},
		"target":      target(&j.Target),
		"attempts":    attempts(&j.Attempts),
		"retry_delay": duration(&j.RetryDelay),
		"on_error":    word(&j.OnError, "retry", "reject"),
		"timeout":     duration(&j.Timeout),
		"lease":       duration(&j.Lease),

		"delay_order_after_setback": setbacks(&j.Setbacks),
	})
	d.Need(n, path, "path")
	r.claim(d, n, path, "job", j.Path)
	r.set.Jobs = append(r.set.Jobs, j)
}

// checkQueue refuses a queue that is neither declared nor built in, since a misspelt name would be a queue without limits.
func (r *reader) checkQueue(d *strict.Document, n *strict.Node, path, name string) {
	if name != "" && !r.declared("queue", name) && !slices.Contains([]string{SyncQueue, EventQueue, MainQueue}, name) {
		d.Fail(n, path, "no queue %q is declared", name)
	}
}

func (r *reader) queue(d *strict.Document, n *strict.Node, path string) {
	var q Queue
	var kind string
	d.Object(n, path, strict.Fields{
		"name": name(&q.Name),
		"topics": each(func(d *strict.Document, n *strict.Node, path string) {
			q.Topics = append(q.Topics, topicPattern(d, n, path))
		}),
		"ranking":      ranking(&q.Ranking),
		"type":         word(&kind, string(Unordered), string(Ordered), string(RoundRobin)),
		"max_parallel": parallel(&q.MaxParallel),
		"retries":      retries(&q.Retries),
		"retry_delay":  pause(&q.RetryDelay),
		"keep_jobs":    boolean(&q.KeepJobs),
		"weights":      weights(&q.Weights),
	})
	q.Type = QueueType(kind)
	d.Need(n, path, "name")
	r.claim(d, n, path, "queue", q.Name)
	r.set.Queues = append(r.set.Queues, q)
}

func (r *reader) schedule(d *strict.Document, n *strict.Node, path string) {
	var s Schedule
	d.Object(n, path, strict.Fields{
		"name":     name(&s.Name),
		"cron":     cronExpression(&s.Cron),
		"date":     date(&s.Date),
		"timezone": zone(&s.Timezone),
		"dst":      word(&s.DST, "cron", "quartz"),
		"job": func(d *strict.Document, n *strict.Node, path string) {
			s.Job = d.Text(n, path)
			r.finally(func() { r.checkJob(d, n, path, s.Job) })
		},
		"order":   r.scheduledOrder(&s.Order),
		"payload": payload(&s.Payload),
		"misfire": word(&s.Misfire, "skip", "once", "all"),
		"overlap": word(&s.Overlap, "allow", "skip", "queue"),
	})
	d.Need(n, path, "name")
	switch {
	case s.Order == nil:
		d.Need(n, path, "job")
	case s.Job != "":
		d.Fail(n, path, "job and order cannot both be given")
	case s.Payload != nil:
		d.Fail(n, path, "an order has no payload")
	}
	if s.Date.IsZero() {
		d.Need(n, path, "cron")
	} else if s.Cron != "" {
		d.Fail(n, path, "cron and date cannot both be given")
	}
	r.claim(d, n, path, "schedule", s.Name)
	r.set.Schedules = append(r.set.Schedules, s)
}

// checkJob refuses a path that nothing is declared for; topics need no declaration.
func (r *reader) checkJob(d *strict.Document, n *strict.Node, path, job string) {
	if topic, ok := topicOf(job); ok && ValidTopic(topic) {
		return
	}
	if job != "" && !r.declared("job", job) {
		d.Fail(n, path, "no job %q is declared", job)
	}
}
