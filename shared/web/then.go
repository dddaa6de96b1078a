package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// What follows shows what there was at a moment as far as the journal tells: what has become of the tasks of each job, by a projection, and
// everything else by the newest events before the moment. The caller has asked the API for the moment.

// mostTraced is how many events are looked through for what stood at a moment, and more if the reader asks to look further back.
const (
	mostTraced = 10_000
	allTraced  = 200_000
)

// happened is an event as these pages read it; it has those members that its type has.
type happened struct {
	EventID int64          `json:"eventId"`
	TYPE    string         `json:"TYPE"`
	Key     jsontext.Value `json:"key"`

	Outcome  string         `json:"outcome"`
	RetryAt  jsontext.Value `json:"retryAt"`
	Instance string         `json:"instance"`
	Name     string         `json:"name"`
	Sequence int64          `json:"sequence"`
	Producer string         `json:"producer"`
}

// named returns the key of an event that is no task's.
func (e *happened) named() (name string) {
	_ = json.Unmarshal(e.Key, &name) // "" of a task's
	return name
}

// of returns the task that an event is of, and its job.
func (e *happened) of() (job, id string) {
	var key struct {
		JobPath string `json:"jobPath"`
		TaskID  string `json:"taskId"`
	}
	_ = json.Unmarshal(e.Key, &key) // "" of others
	return key.JobPath, key.TaskID
}

// At returns when it was.
func (e happened) At() string { return utc(time.UnixMicro(e.EventID)) }

// traced returns the newest events of some types before the moment, newest first. Where there were more, the template's since says so.
func (r *reading) traced(types string) []happened {
	const name = "traced"
	most := mostTraced
	if r.query("all") != "" {
		most = allTraced
	}
	query := url.Values{"return": {types}}
	r.look(query, most, func(query url.Values) (enough, torn bool) {
		var answer struct {
			TYPE   string     `json:"TYPE"`
			Events []happened `json:"eventSnapshots"`
		}
		r.err = r.d.ask(r.r.Context(), http.MethodGet, journalAPI+"/event?"+query.Encode(), "", &answer)
		r.Data[name] = answer.Events
		return len(answer.Events) == most, answer.TYPE == "Torn"
	})
	all, _ := r.Data[name].([]happened)
	if delete(r.Data, name); len(all) == most {
		r.Data["since"] = time.UnixMicro(all[most-1].EventID)
	}
	return all
}

// work is what had become of a job's tasks.
type work struct {
	Job   string // its path
	State string // run, or the rules in force; "" if nothing had been said of the job
	projection.Done
	Waited, Ran float64 // on the average, in milliseconds
	declared    bool
}

// readWorkThen returns what reads what had become of the tasks of the jobs below a path, and which of those were paused or blocked; those too
// that were only declared, as objects of a kind.
func readWorkThen(below, kind string) func(*reading) {
	return func(r *reading) {
		all, at, part := map[string]*work{}, r.query("at"), journal.Part{Prefixes: []string{below}}
		of := func(path string) *work {
			if all[path] == nil {
				all[path] = &work{Job: path}
			}
			return all[path]
		}
		r.snapshot(projection.WorkName, at, part, func(key string, value []byte) {
			if d, is := projection.ReadDone(key, value); is {
				w := of(key)
				w.Done, w.Waited, w.Ran = d, average(d.Waited, d.Starts), average(d.Processed, d.Ends)
			}
		})
		r.snapshot(projection.JobsName, at, part, func(path string, value []byte) {
			var job projection.JobOverview
			if err := json.Unmarshal(value, &job); err == nil {
				of(path).State = job.State
			}
		})
		for _, name := range r.declaredThen(kind) {
			of(below + name).declared = true
		}
		for _, w := range all {
			if w.declared {
				w.State = cmp.Or(w.State, projection.RunningJob)
			}
		}
		r.Data["work"] = slices.SortedFunc(maps.Values(all), func(a, b *work) int { return strings.Compare(a.Job, b.Job) })
	}
}

// average returns the mean of a sum of microseconds, in milliseconds; 0 of nothing.
func average(sum, of int64) float64 { return float64(sum/max(of, 1)) / 1000 }

// readQueuesThen reads what had become of tasks, by job, and which queues were suspended.
func readQueuesThen(r *reading) {
	readWorkThen("/", "Job:/")(r)
	var suspended []string
	r.latest("QueueSuspended,QueueResumed", func(key string, e *happened) {
		if e.TYPE == "QueueSuspended" {
			suspended = append(suspended, strings.TrimPrefix(key, "Queue:/"))
		}
	})
	slices.Sort(suspended)
	r.Data["suspended"], r.Data["queues"] = suspended, r.declaredThen("Queue:/")
}

// latest calls each with the newest of some events before the moment of each key.
func (r *reading) latest(types string, each func(key string, e *happened)) {
	seen := map[string]bool{}
	all := r.traced(types)
	for i := range all {
		if key := all[i].named(); !seen[key] {
			seen[key] = true
			each(key, &all[i])
		}
	}
}

// declaredThen returns the names of what was declared at the moment, of one kind.
func (r *reading) declaredThen(kind string) (names []string) {
	r.snapshot(projection.FileBasedName, r.query("at"), journal.Part{Prefixes: []string{kind}}, func(key string, _ []byte) {
		names = append(names, strings.TrimPrefix(key, kind))
	})
	slices.Sort(names)
	return names
}

// scheduled is a schedule at a moment.
type scheduled struct {
	Name      string
	Suspended bool
	Last      string // what it had done last: an event's type; "" if it had done nothing
	At        string // when
}

// ofSchedules are the types of the events that tell what a schedule does.
const ofSchedules = "ScheduleFired,ScheduleMissed,ScheduleSkipped"

// readSchedulesThen reads which schedules were declared and what each had done last.
func readSchedulesThen(r *reading) {
	names := r.declaredThen(scheduleKey)
	all := make([]*scheduled, min(len(names), mostOrders))
	byKey := make(map[string]*scheduled, len(all))
	for i := range all {
		all[i] = &scheduled{Name: names[i]}
		byKey[scheduleKey+names[i]] = all[i]
	}
	r.latest("ScheduleSuspended,ScheduleResumed", func(key string, e *happened) {
		if s := byKey[key]; s != nil {
			s.Suspended = e.TYPE == "ScheduleSuspended"
		}
	})
	r.latest(ofSchedules, func(key string, e *happened) {
		if s := byKey[key]; s != nil {
			s.Last, s.At = e.TYPE, e.At()
		}
	})
	r.Data["schedules"], r.Data["cut"], r.Data["most"] = all, len(names) > mostOrders, mostOrders
}

// readScheduleThen reads whether a schedule was declared, and what it had done.
func readScheduleThen(r *reading) {
	r.told(r.r.PathValue("name"))
	r.Data["declared"] = slices.Contains(r.declaredThen(scheduleKey), r.r.PathValue("name"))
}

// written is a stream at a moment, as far as events tell.
type written struct {
	Stream   string
	Producer string
	Names    map[string]int64 // the newest sequence of each name
	Events   int64
	At       string // when the newest was appended
}

// readStreamsThen reads the streams that had got events lately.
func readStreamsThen(r *reading) { r.Data["streams"] = streamsOf(r.traced("StreamAppended")) }

// streamsOf returns the streams of events, newest first, by name.
func streamsOf(events []happened) []*written {
	all := map[string]*written{}
	for i := range events {
		e := &events[i]
		w := all[e.named()]
		if w == nil {
			w = &written{Stream: e.named(), Producer: e.Producer, Names: map[string]int64{}, At: e.At()}
			all[w.Stream] = w
		}
		if w.Names[e.Name] == 0 { // each name's are counted from one, without a gap
			w.Names[e.Name] = e.Sequence
			w.Events += e.Sequence
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *written) int { return strings.Compare(a.Stream, b.Stream) })
}

// readStreamThen reads what had been appended to a stream lately.
func readStreamThen(r *reading) {
	name := r.r.PathValue("stream")
	events := slices.DeleteFunc(r.traced("StreamAppended"), func(e happened) bool { return e.named() != name })
	if all := streamsOf(events); len(all) > 0 {
		r.Data["stream"] = all[0]
	}
	r.Data["name"], r.Data["appended"] = name, events[:min(len(events), 50)]
}

// busy is an instance that ran tasks at a moment.
type busy struct {
	Instance string
	Running  int
	Jobs     []string
	Since    string // when it started the first of them
}

// readInstancesThen reads which instances ran tasks: a task ran if the newest of its starts and ends is a start.
func readInstancesThen(r *reading) {
	all, ended := map[string]*busy{}, map[string]bool{}
	events := r.traced("TaskStarted,TaskEnded")
	for i := range events {
		e := &events[i]
		job, id := e.of()
		if ended[id] {
			continue
		}
		ended[id] = true
		if e.TYPE != "TaskStarted" {
			continue
		}
		b := all[e.Instance]
		if b == nil {
			b = &busy{Instance: e.Instance}
			all[e.Instance] = b
		}
		if b.Running, b.Since = b.Running+1, e.At(); !slices.Contains(b.Jobs, job) {
			b.Jobs = append(b.Jobs, job)
		}
	}
	r.Data["instances"] = slices.SortedFunc(maps.Values(all), func(a, b *busy) int { return strings.Compare(a.Instance, b.Instance) })
}

// failed is what had failed for good alike, as far as events tell.
type failed struct {
	Job, Outcome string
	Count        int
	First, Last  string // when the oldest ended, and the newest
	Newest       string // id
}

// readFailuresThen reads the newest ends without another attempt that were no successes, by job and outcome.
func readFailuresThen(r *reading) {
	groups := map[[2]string]*failed{}
	events := r.traced("TaskEnded")
	for i := range events {
		e := &events[i]
		if e.Outcome == "ok" || e.Outcome == "again" || e.RetryAt != nil {
			continue
		}
		job, id := e.of()
		f := groups[[2]string{job, e.Outcome}]
		if f == nil {
			f = &failed{Job: job, Outcome: e.Outcome, Last: e.At(), Newest: id}
			groups[[2]string{job, e.Outcome}] = f
		}
		f.Count, f.First = f.Count+1, e.At()
	}
	r.Data["failures"] = slices.SortedFunc(maps.Values(groups), func(a, b *failed) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Job, b.Job), strings.Compare(a.Outcome, b.Outcome))
	})
}
