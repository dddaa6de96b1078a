package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// jobType is one of the types of jobs that a list may be asked for, as in Sling's job handling.
type jobType struct {
	name    string
	history bool
	states  []task.State
}

// jobTypes are all there are; the first is the default.
var jobTypes = []jobType{
	{"ALL", false, []task.State{task.Waiting, task.Ready, task.Running}},
	{"ACTIVE", false, []task.State{task.Running}},
	{"QUEUED", false, []task.State{task.Waiting, task.Ready}},
	{"HISTORY", true, []task.State{task.Succeeded, task.Failed, task.Rejected, task.Stopped, task.Dropped, task.Missing}},
	{"CANCELLED", true, []task.State{task.Failed, task.Rejected, task.Stopped, task.Dropped}},
	{"SUCCEEDED", true, []task.State{task.Succeeded}},
	{"STOPPED", true, []task.State{task.Stopped}},
	{"GIVEN_UP", true, []task.State{task.Failed}},
	{"ERROR", true, []task.State{task.Rejected}},
	{"DROPPED", true, []task.State{task.Dropped}},
}

// jobTypeOf returns the type of that name.
func jobTypeOf(location, name string) (jobType, error) {
	i := slices.IndexFunc(jobTypes, func(t jobType) bool { return t.name == name })
	if i < 0 {
		return jobType{}, invalid(location, "want one of %s", strings.Join(JobTypes(), ", "))
	}
	return jobTypes[i], nil
}

// JobTypes returns the names of the lists of jobs that a client may ask for; the first is the default.
func JobTypes() []string {
	names := make([]string, len(jobTypes))
	for i := range jobTypes {
		names[i] = jobTypes[i].name
	}
	return names
}

const aboutLists = "Jobs that are not finished come by creation, oldest first; the history comes by its end, newest first. CANCELLED are those that " +
	"ended otherwise than by success."

func describeJobs() *operation {
	return &operation{
		ID: "jobs", Tags: []string{"Jobs"}, Summary: "Jobs of all topics, or of one",
		Description: aboutLists + " Lists of one topic are cheaper: on DynamoDB a page of all takes sixteen queries, a page of one topic one.",
		Parameters:  append(params{queryParam("type", "", false, typeSchema()), queryParam("topic", "", false, topicSchema())}, pageParams()...),
		Responses:   pageIn("jobs", ref("Job")), failures: []int{422},
	}
}

func describeSearchJobs() *operation {
	return &operation{
		ID: "searchJobs", Tags: []string{"Jobs"}, Summary: "Search for jobs",
		Description: aboutLists + " A job is found if all members of one template hold. A page may hold fewer jobs than limit although there are more; the header Link says so.",
		Parameters:  pageParams(),
		Body:        jsonBody(ref("JobSearch"), map[string]any{"type": "GIVEN_UP", "templates": []any{map[string]any{">=parcel": 17}}}),
		Responses:   pageIn("jobs", ref("Job")), failures: []int{422},
	}
}

func typeSchema() *schema {
	s := choice("", JobTypes()...)
	s.Default = jobTypes[0].name
	return s
}

func jobSearchSchema() *schema {
	templates := listOf(object("Each member is a condition: an operator (=, <, <=, >, >=, ~, or none for =) before the name of a field of the "+
		"job, or else of a property; properties.NAME is always a property. ~ finds texts that hold the given one, in capitals or not", nil, true))
	templates.MaxItems = maxTemplates
	return object("What is sought", members{"type": typeSchema(), "topic": topicSchema(), "templates": templates}, false)
}

func (j *jobs) list(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	kind := jobTypes[0]
	name, given, err := q.one("type")
	if err == nil && given {
		kind, err = jobTypeOf("query.type", name)
	}
	if err != nil {
		return err
	}
	topic, given, err := q.one("topic")
	if err != nil {
		return err
	}
	if given && !definition.ValidTopic(topic) {
		return invalid("query.topic", "%s is no topic", quoted(topic))
	}
	return j.answer(x, q, kind, topic, nil)
}

func (j *jobs) search(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	kind, topic := jobTypes[0], ""
	var sought templates
	err = x.object(
		member{name: "type", read: func(location string, value jsontext.Value) error {
			name, err := readText(location, value)
			if err == nil {
				kind, err = jobTypeOf(location, name)
			}
			return err
		}},
		member{name: "topic", read: func(location string, value jsontext.Value) (err error) {
			if topic, err = readText(location, value); err == nil && !definition.ValidTopic(topic) {
				err = invalid(location, "%s is no topic", quoted(topic))
			}
			return err
		}},
		member{name: "templates", read: sought.read},
	)
	if err != nil {
		return err
	}
	return j.answer(x, q, kind, topic, sought)
}

// answer responds with a page.
func (j *jobs) answer(x *exchange, q query, kind jobType, topic string, sought templates) (err error) {
	l := view.JobListing{History: kind.history, States: kind.states}
	if topic != "" {
		l.Topic = queue.TopicPath(topic)
	}
	if l.Limit, err = q.page(); err != nil {
		return err
	}
	if l.Cursor, err = q.cursor(); err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	var failed error
	if len(sought) > 0 {
		l.Match = func(t *task.Task) bool {
			found, err := j.matches(x, sought, t, now)
			if err != nil {
				failed = err
			}
			return found
		}
	}
	page, err := j.jobEngine.Jobs(x.r.Context(), l)
	if err != nil {
		return x.ofList(q, &page, err)
	}
	if failed != nil {
		return failed
	}
	views := make([]jobView, 0, len(page.Tasks))
	cursor, err := x.each(j.engine, &page, l.CursorAfter, func(t *task.Task) { views = append(views, viewJob(t, now)) })
	if err != nil {
		return err
	}
	x.next(q, cursor)
	return x.value(http.StatusOK, map[string][]jobView{"jobs": views})
}

// matches reports whether a template holds for a job; properties that are kept apart are fetched if a condition needs them.
func (j *jobs) matches(x *exchange, sought templates, t *task.Task, now int64) (bool, error) {
	if sought.ofProperties() {
		switch err := x.fill(j.engine, t); {
		case errors.Is(err, queue.ErrNoTask):
			return false, nil // removed meanwhile
		case err != nil:
			return false, err
		}
	}
	return sought.match(&candidate{task: t, now: now})
}
