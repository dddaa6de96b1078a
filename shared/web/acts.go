package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/access"
)

// act is one thing that a person may do: a request to the API, which is said before it is made.
type act struct {
	name    string // in forms, as "queue.suspend"
	label   string // of its button
	says    string // what will happen, with {parameters} for values
	method  string
	path    string   // with {parameters}, which are escaped
	answers []string // fields of the form that make up the request's body; empty: it has none. One of [objects] is JSON
	then    string   // the page that comes next, with {id} for the response's; empty: the one that it came from
}

// likes are the resources whose fields an act's form begins with, by the act's name.
var likes = map[string]string{"job.again": "/api/v1/jobs/{id}"}

// objects are the fields of forms that hold a JSON object.
var objects = []string{"properties", "variables"}

// isObject reports whether the field of a form holds a JSON object.
func isObject(field string) bool { return slices.Contains(objects, field) }

// acts are all acts of the pages.
var acts = []act{
	{"queue.suspend", "Suspend", "No task of the queue {name} is started until somebody resumes it. What runs goes on.", "POST", "/api/v1/queues/{name}/suspend", nil, ""},
	{"queue.resume", "Resume", "Tasks of the queue {name} are started again.", "POST", "/api/v1/queues/{name}/resume", nil, ""},
	{"queue.purge", "Purge", "Every task that waits in the queue {name} is removed, for good. What runs goes on.", "POST", "/api/v1/queues/{name}/purge", nil, ""},
	{"job.add", "Add a job", "A job for the topic is added. Who runs the topic is given the properties.", "POST", "/api/v1/jobs", []string{"topic", "properties"}, "/task/{id}"},
	{"job.again", "Edit and run again", "A new job for the topic is added, with these properties; {id} stays as it is.", "POST", "/api/v1/jobs", []string{"topic", "properties"}, "/task/{id}"},
	{"job.stop", "Stop", "The task {id} is asked to stop; if it has not started, it never does.", "POST", "/api/v1/jobs/{id}/stop", nil, ""},
	{"job.remove", "Remove", "The task {id} goes to the history as dropped, even if it runs.", "DELETE", "/api/v1/jobs/{id}", nil, ""},
	{"job.retry", "Run again", "A new task like {id} is added.", "POST", "/api/v1/jobs/{id}/retry", nil, "/task/{id}"},
	{"schedule.suspend", "Suspend", "The schedule {name} makes no ticks until somebody resumes it.", "POST", "/api/v1/schedules/{name}/suspend", nil, ""},
	{"schedule.resume", "Resume", "The schedule {name} makes ticks again.", "POST", "/api/v1/schedules/{name}/resume", nil, ""},
	{"schedule.trigger", "Run now", "The schedule {name} makes one tick now, besides those that are due.", "POST", "/api/v1/schedules/{name}/trigger", nil, ""},
	{"handler.pause", "Pause", "No event of {space}/{name} in the canvas {canvas} is started until somebody lifts the pause.", "PUT", "/api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/pause", nil, ""},
	{"handler.unpause", "Lift the pause", "Events of {space}/{name} in the canvas {canvas} are started again.", "DELETE", "/api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/pause", nil, ""},
	{"instance.drain", "Drain", "The instance {id} claims nothing more. What it runs goes on.", "POST", "/api/v1/instances/{id}/drain", nil, ""},
	{"order.suspend", "Suspend", "The order {id} of {chain} stays where it is, once its running step has ended.", "POST", "/api/v1/orders/{chain}/{id}/suspend", nil, ""},
	{"order.resume", "Resume", "The order {id} of {chain} goes on from its node. Variables that are given here replace those it has.", "POST", "/api/v1/orders/{chain}/{id}/resume", []string{"variables"}, ""},
	{"order.skip", "Skip the node", "The order {id} of {chain} passes its node as if that had succeeded.", "POST", "/api/v1/orders/{chain}/{id}/skip", nil, ""},
	{"order.reset", "Reset", "The order {id} of {chain} goes back to its first node, resumed.", "POST", "/api/v1/orders/{chain}/{id}/reset", nil, ""},
	{"order.run-now", "Run now", "The order {id} of {chain} waits for no time any more.", "POST", "/api/v1/orders/{chain}/{id}/run-now", nil, ""},
	{"order.remove", "Remove", "The order {id} of {chain} is removed, once its running step has ended.", "DELETE", "/api/v1/orders/{chain}/{id}", nil, ""},
	{"order.answer", "Answer", "The order {id} of {chain} goes on by this answer to its prompt. Your name goes on the journal.", "POST", "/api/v1/orders/{chain}/{id}/answer", []string{"answer", "comment"}, ""},
	{"order.add", "Add an order", "An order of the chain {chain} is added. The id names it among the orders of the chain.", "POST", "/api/v1/orders/{chain}", []string{"id", "variables"}, ""},
	{"acts.stop", "Stop", "The act {id} goes no further. What it has done stays.", "POST", "/api/v1/acts/{id}/stop", nil, ""},
	{"acts.resume", "Go on", "The act {id} goes on where it stopped.", "POST", "/api/v1/acts/{id}/resume", nil, ""},
	{"chain.stop", "Stop", "No order starts a step in the chain {chain} until somebody starts it. Running steps go on.", "POST", "/api/v1/chains/{chain}/stop", nil, ""},
	{"chain.start", "Start", "Orders of the chain {chain} go on.", "POST", "/api/v1/chains/{chain}/start", nil, ""},
}

// actNamed returns the act of that name, nil if there is none.
func actNamed(name string) *act {
	for i := range acts {
		if acts[i].name == name {
			return &acts[i]
		}
	}
	return nil
}

// target returns the path of the act's request.
func (a *act) target(values url.Values) string { return fill(a.path, values, url.PathEscape) }

// sentence returns what the act says before it is done.
func (a *act) sentence(values url.Values) string {
	return fill(a.says, values, func(value string) string { return value })
}

// fill puts values in the place of {parameters}.
func fill(text string, values url.Values, escape func(string) string) string {
	for name := range values {
		text = strings.ReplaceAll(text, "{"+name+"}", escape(values.Get(name)))
	}
	return text
}

// permitted reports whether the role may do it.
func (d *Dashboard) permitted(token *access.Token, a *act, values url.Values) bool {
	return d.api.Permits(token.Role, a.method, a.target(values))
}

// confirmation is what the page shows that asks before an act is done.
type confirmation struct {
	Act      string
	Label    string
	Sentence string
	Fields   []field    // that the person is asked for
	Values   url.Values // hidden fields of the form
	Back     string
}

// field is a field of a form, with what it begins with.
type field struct{ Name, Value string }

// confirm shows what an act will do, with the form that does it.
func (d *Dashboard) confirm(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	a := actNamed(values.Get("do"))
	if a == nil {
		d.fail(w, r, &refusal{Status: http.StatusNotFound, Detail: "There is no such act."})
		return
	}
	if !d.permitted(tokenOf(r), a, values) {
		d.fail(w, r, &refusal{Status: http.StatusForbidden, Detail: fmt.Sprintf("The role %s may not do this.", tokenOf(r).Role)})
		return
	}
	c := confirmation{Act: a.name, Label: a.label, Sentence: a.sentence(values), Back: local(values.Get("back"))}
	like := make(map[string]any)
	if from := likes[a.name]; from != "" {
		if err := d.ask(r.Context(), http.MethodGet, fill(from, values, url.PathEscape), "", &like); err != nil {
			d.fail(w, r, err)
			return
		}
	}
	for _, name := range a.answers {
		c.Fields = append(c.Fields, field{name, cmp.Or(values.Get(name), given(like[name]))})
		values.Del(name)
	}
	values.Del("do")
	values.Del("back")
	c.Values = values
	d.renderPage(w, r, http.StatusOK, frame{View: "confirm", Title: a.label, Data: c})
}

// given returns a field of a resource as a form shows it, "" for none.
func given(value any) string {
	if value == nil {
		return ""
	}
	return text(value)
}

// act does what was confirmed, and sends the browser back to where it was.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		d.fail(w, r, &refusal{Status: http.StatusBadRequest, Detail: "The form cannot be read."})
		return
	}
	a := actNamed(r.PostForm.Get("do"))
	if a == nil {
		d.fail(w, r, &refusal{Status: http.StatusNotFound, Detail: "There is no such act."})
		return
	}
	next, err := d.perform(r, a)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	redirect(w, r, next)
}

// perform makes the act's request with the values of a form, and returns the page that comes next.
func (d *Dashboard) perform(r *http.Request, a *act) (next string, err error) {
	body, err := a.body(r.PostForm)
	if err != nil {
		return "", err
	}
	var made struct{ ID string }
	var out any
	if a.then != "" {
		out = &made
	}
	if err := d.ask(r.Context(), a.method, a.target(r.PostForm), body, out); err != nil {
		return "", err
	}
	if a.then != "" {
		return fill(a.then, url.Values{"id": {made.ID}}, url.PathEscape), nil
	}
	return local(r.PostForm.Get("back")), nil
}

// body returns the request's body: the fields that are given, as JSON. The error names the field that is none.
func (a *act) body(values url.Values) (string, error) {
	members := make(map[string]any)
	for _, name := range a.answers {
		value := values.Get(name)
		switch {
		case strings.TrimSpace(value) == "":
		case !isObject(name):
			members[name] = value
		case !json.Valid([]byte(value)):
			return "", &refusal{Status: http.StatusBadRequest, Detail: name + `: want a JSON object, such as {"name":"ada"}. Go back to mend it.`}
		default:
			members[name] = json.RawMessage(value)
		}
	}
	if len(members) == 0 {
		return "", nil
	}
	body, err := json.Marshal(members)
	return string(body), err
}
