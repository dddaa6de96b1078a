package web

import (
	"cmp"
	"maps"
	"net/url"
	"slices"

	"github.com/millrace/millrace/shared/task/failure"
)

// kind is what jobs that failed alike have in common.
type kind struct {
	Message string // of the newest of them
	Shape   string // what their messages have in common
	State   string // GIVEN_UP or ERROR
	Job     string // its path
	Topic   string // "" of what is no job of a topic
	Count   int
	First   any // when the oldest ended, and the newest
	Last    any
	Newest  any // id
}

// looked is how many jobs of each type are looked at.
const looked = "500"

// readFailures groups the jobs that were given up, or ended as an error, by that, by their job and by the shape of their message.
func readFailures(r *reading) {
	groups := map[string]*kind{}
	for _, listed := range []string{"GIVEN_UP", "ERROR"} {
		r.get(listed, "/api/v1/jobs?"+url.Values{"type": {listed}, "limit": {looked}}.Encode())
		list, _ := r.Data[listed].(map[string]any)
		jobs, _ := list["jobs"].([]any)
		for _, j := range jobs { // the newest first
			job, _ := j.(map[string]any)
			message, _ := job["message"].(string)
			path, _ := job["job"].(string)
			shape := failure.Shape(message)
			key := listed + "\n" + path + "\n" + shape
			if groups[key] == nil {
				groups[key] = &kind{Message: message, Shape: shape, State: listed, Job: path, Topic: given(job["topic"]), Last: job["finished_at"], Newest: job["id"]}
			}
			groups[key].Count++
			groups[key].First = job["finished_at"]
		}
	}
	r.Data["failures"] = slices.SortedFunc(maps.Values(groups), func(a, b *kind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.State, b.State))
	})
}
