package web

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mostAround is how many events are looked at from each time on at which something is known to have happened to a task.
const mostAround = "300"

// timeline returns the events of a task, oldest first: those that are soon after the times when it was added, started and finished. Others,
// of attempts in between, may be missing where much else happened. job is its path, "" if that is not known.
func (r *reading) timeline(id string, job map[string]any) []any {
	found := make(map[int64]any)
	path, _ := job["job"].(string)
	query := url.Values{"return": {"TaskEvent"}, "with": {"cause"}, "limit": {mostAround}}
	for _, at := range timesOf(id, job) {
		query.Set("after", strconv.FormatInt(at.Add(-5*time.Millisecond).UnixMicro(), 10)) // ids and times are noted one after the other
		r.perhaps("around", journalAPI+"/task"+(&url.URL{Path: cmp.Or(path, "/")}).EscapedPath()+"?"+query.Encode())
		for _, e := range r.events("around") {
			event, _ := e.(map[string]any)
			if key, _ := event["key"].(map[string]any); key["taskId"] == id || event["taskId"] == id {
				found[idOf(e)] = e
			}
		}
	}
	delete(r.Data, "around")
	all := make([]any, 0, len(found))
	for _, e := range found {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b any) int { return cmp.Compare(idOf(a), idOf(b)) })
	return all
}

// timesOf returns when something is known to have happened to a task. When it was added, its id says: a UUID that begins with
// milliseconds.
func timesOf(id string, job map[string]any) (all []time.Time) {
	for _, name := range []string{"created_at", "started_at", "finished_at"} {
		text, _ := job[name].(string)
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			all = append(all, at)
		}
	}
	if len(all) > 0 || len(id) < 36 {
		return all
	}
	digits := strings.ReplaceAll(id[len(id)-36:], "-", "")
	if ms, err := strconv.ParseInt(digits[:min(12, len(digits))], 16, 64); err == nil {
		all = append(all, time.UnixMilli(ms))
	}
	return all
}

// readTaskThen reads what had happened to a task up to a moment.
func readTaskThen(r *reading) {
	id := r.r.PathValue("id")
	r.Data["id"] = id
	r.perhaps("job", "/api/v1/jobs/"+url.PathEscape(id))
	job, _ := r.Data["job"].(map[string]any)
	at, _ := strconv.ParseInt(r.query("at"), 10, 64) // the API has read it as an id
	events := slices.DeleteFunc(r.timeline(id, job), func(e any) bool { return idOf(e) > at })
	r.Data["events"], r.Data["said"] = events, saidOf(events)
}

// saidOf says in one sentence where a task was after these events, oldest first, and why.
func saidOf(events []any) string {
	if len(events) == 0 {
		return "There was no such task yet, or the journal has its events no more."
	}
	last, _ := events[len(events)-1].(map[string]any)
	since := utc(timeOf(last["eventId"]))
	switch last["TYPE"] {
	case "TaskAdded":
		if runAt, _ := last["runAt"].(string); runAt != "" {
			return "It waited until " + runAt + ", when it was to run."
		}
		return "It waited to be started, since " + since + "."
	case "TaskStarted":
		return "It was running, since " + since + "."
	case "TaskEnded":
		if retry, _ := last["retryAt"].(string); retry != "" {
			return "An attempt had ended at " + since + "; it waited until " + retry + " for the next."
		}
		return "Its attempt had ended, at " + since + "."
	}
	return "It was over, since " + since + "."
}

// readCause reads an event as a whole, what has led to it, and what it has led to.
func readCause(r *reading) {
	id := r.r.PathValue("event")
	r.get("lineage", journalAPI+"/journal/cause/"+url.PathEscape(id))
	number, _ := strconv.ParseInt(id, 10, 64) // the API has read it as an id
	r.Data["event"] = r.one("with=cause&limit=1&after=" + strconv.FormatInt(number-1, 10))
	r.Data["id"] = id
}
