package web

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
)

// failure is what jobs that failed alike have in common.
type failure struct {
	Message string // of the newest of them
	Job     string // its path
	Count   int
	First   any // when the oldest ended, and the newest
	Last    any
	Newest  any // id
}

// looked is how many jobs of each type are looked at.
const looked = "500"

// varying is what differs between messages of one kind: ids, numbers, what stands between quotes.
var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27,}|0x[0-9a-fA-F]+|[0-9a-fA-F]{16,}|[0-9]+`)

// shapeOf returns what messages of one kind have in common.
func shapeOf(message string) string { return varying.ReplaceAllString(message, "…") }

// readFailures groups the jobs that were given up, or ended as an error, by their job and the shape of their message.
func readFailures(r *reading) {
	groups := map[string]*failure{}
	for _, kind := range []string{"GIVEN_UP", "ERROR"} {
		r.get(kind, "/api/v1/jobs?"+url.Values{"type": {kind}, "limit": {looked}}.Encode())
		list, _ := r.Data[kind].(map[string]any)
		jobs, _ := list["jobs"].([]any)
		for _, j := range jobs { // the newest first
			job, _ := j.(map[string]any)
			message, _ := job["message"].(string)
			path, _ := job["job"].(string)
			key := path + "\n" + shapeOf(message)
			if groups[key] == nil {
				groups[key] = &failure{Message: message, Job: path, Last: job["finished_at"], Newest: job["id"]}
			}
			groups[key].Count++
			groups[key].First = job["finished_at"]
		}
	}
	r.Data["failures"] = slices.SortedFunc(maps.Values(groups), func(a, b *failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Message, b.Message))
	})
}
