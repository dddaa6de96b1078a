package schedule

import (
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// The overlap policies: what happens to a tick whose time comes while the task of the one before is unfinished.
const (
	OverlapAllow = "allow" // it runs beside it; the default
	OverlapSkip  = "skip"  // its task is dropped
	OverlapQueue = "queue" // its task waits
)

// PriorityBySchedule is the priority of sync tasks that a schedule makes, as in EventNative's task scheduler.
const PriorityBySchedule = 200

// tick returns the request for the task of a tick.
func (p *plan) tick(at time.Time) queue.New {
	n := Request(p.Job, p.Payload)
	n.NotBefore, n.Same, n.Schedule = at.UTC(), "schedule "+p.Name, p.Name
	n.Late = n.Unique != ""
	if p.interval > 0 {
		n.Modifier = p.Cron // by which Dark tells crons apart
	}
	switch p.Overlap {
	case OverlapSkip:
		n.Concurrency = &task.Concurrency{Key: "schedule " + p.Name, Limit: 1, Skip: true}
	case OverlapQueue:
		n.Concurrency = &task.Concurrency{Key: "schedule " + p.Name, Limit: 1}
	}
	return n
}

// requests returns the requests for the tasks of ticks. cause is the event that brings them about; 0: a request does.
func (p *plan) requests(cause event.ID, times []time.Time) []queue.New {
	news := make([]queue.New, len(times))
	for i, at := range times {
		news[i] = p.tick(at)
		news[i].Cause = cause
	}
	return news
}

// Request returns the request for a task of a job by its path. The path decides the dialect: /sources/SOURCE/COLLECTION is a
// sync task, /canvases/CANVAS/SPACE/NAME a handler event, any other a job.
func Request(job string, payload []byte) queue.New {
	parts := strings.Split(strings.TrimPrefix(job, "/"), "/")
	switch {
	case parts[0] == "sources" && len(parts) == 3:
		return queue.SyncTask(parts[1], parts[2], PriorityBySchedule)
	case parts[0] == "canvases" && len(parts) == 4:
		if payload == nil {
			payload = []byte("null") // as Dark's crons emit
		}
		return queue.New{Dialect: task.Event, Job: job, Payload: payload, Queue: definition.EventQueue, Modifier: "_"}
	default:
		return queue.New{Dialect: task.Job, Job: job, Payload: payload}
	}
}

// told returns the events for ticks that were made or missed, because of the event cause.
func (p *plan) told(d ticks, cause event.ID) []event.Event {
	var events []event.Event
	if d.missed {
		events = append(events, typed.ScheduleMissed{From: d.from, To: d.to, Misfire: p.misfire()}.Event(p.Name))
	}
	if n := len(d.times); n > 0 {
		events = append(events, typed.ScheduleFired{Ticks: n, From: d.times[0], At: d.times[n-1]}.Event(p.Name))
	}
	for i := range events {
		events[i].Cause = event.CausedBy(cause)
	}
	return events
}

func (p *plan) misfire() string {
	if p.Misfire == "" {
		return MisfireOnce
	}
	return p.Misfire
}
