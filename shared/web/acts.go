package web

import (
	"fmt"
	"net/http"
	"net/url"
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
	answers []string // fields of the form that make up the request's body; empty: it has none
}

// acts are all acts of the pages.
var acts = []act{
	{"queue.suspend", "Suspend", "No task of the queue {name} is started until somebody resumes it. What runs goes on.", "POST", "/api/v1/queues/{name}/suspend", nil},
	{"queue.resume", "Resume", "Tasks of the queue {name} are started again.", "POST", "/api/v1/queues/{name}/resume", nil},
	{"queue.purge", "Purge", "Every task that waits in the queue {name} is removed, for good. What runs goes on.", "POST", "/api/v1/queues/{name}/purge", nil},
	{"job.stop", "Stop", "The task {id} is asked to stop; if it has not started, it never does.", "POST", "/api/v1/jobs/{id}/stop", nil},
	{"job.remove", "Remove", "The task {id} goes to the history as dropped, even if it runs.", "DELETE", "/api/v1/jobs/{id}", nil},
	{"job.retry", "Run again", "A new task like {id} is added.", "POST", "/api/v1/jobs/{id}/retry", nil},
	{"schedule.suspend", "Suspend", "The schedule {name} makes no ticks until somebody resumes it.", "POST", "/api/v1/schedules/{name}/suspend", nil},
	{"schedule.resume", "Resume", "The schedule {name} makes ticks again.", "POST", "/api/v1/schedules/{name}/resume", nil},
	{"schedule.trigger", "Run now", "The schedule {name} makes one tick now, besides those that are due.", "POST", "/api/v1/schedules/{name}/trigger", nil},
	{"handler.pause", "Pause", "No event of {space}/{name} in the canvas {canvas} is started until somebody lifts the pause.", "PUT", "/api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/pause", nil},
	{"handler.unpause", "Lift the pause", "Events of {space}/{name} in the canvas {canvas} are started again.", "DELETE", "/api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/pause", nil},
	{"instance.drain", "Drain", "The instance {id} claims nothing more. What it runs goes on.", "POST", "/api/v1/instances/{id}/drain", nil},
	{"order.suspend", "Suspend", "The order {id} of {chain} stays where it is, once its running step has ended.", "POST", "/api/v1/orders/{chain}/{id}/suspend", nil},
	{"order.resume", "Resume", "The order {id} of {chain} goes on from its node.", "POST", "/api/v1/orders/{chain}/{id}/resume", nil},
	{"order.skip", "Skip the node", "The order {id} of {chain} passes its node as if that had succeeded.", "POST", "/api/v1/orders/{chain}/{id}/skip", nil},
	{"order.reset", "Reset", "The order {id} of {chain} goes back to its first node, resumed.", "POST", "/api/v1/orders/{chain}/{id}/reset", nil},
	{"order.run-now", "Run now", "The order {id} of {chain} waits for no time any more.", "POST", "/api/v1/orders/{chain}/{id}/run-now", nil},
	{"order.remove", "Remove", "The order {id} of {chain} is removed, once its running step has ended.", "DELETE", "/api/v1/orders/{chain}/{id}", nil},
	{"order.answer", "Answer", "The order {id} of {chain} goes on by this answer to its prompt. Your name goes on the journal.", "POST", "/api/v1/orders/{chain}/{id}/answer", []string{"answer", "comment"}},
	{"acts.stop", "Stop", "The act {id} goes no further. What it has done stays.", "POST", "/api/v1/acts/{id}/stop", nil},
	{"acts.resume", "Go on", "The act {id} goes on where it stopped.", "POST", "/api/v1/acts/{id}/resume", nil},
	{"chain.stop", "Stop", "No order starts a step in the chain {chain} until somebody starts it. Running steps go on.", "POST", "/api/v1/chains/{chain}/stop", nil},
	{"chain.start", "Start", "Orders of the chain {chain} go on.", "POST", "/api/v1/chains/{chain}/start", nil},
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
	Answers  []string   // fields that the person is asked for
	Values   url.Values // hidden fields of the form
	Back     string
}

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
	c := confirmation{Act: a.name, Label: a.label, Sentence: a.sentence(values), Answers: a.answers, Back: local(values.Get("back"))}
	values.Del("do")
	values.Del("back")
	c.Values = values
	d.renderPage(w, r, http.StatusOK, frame{View: "confirm", Title: a.label, Data: c})
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
	if err := d.ask(r.Context(), a.method, a.target(r.PostForm), a.body(r.PostForm), nil); err != nil {
		d.fail(w, r, err)
		return
	}
	redirect(w, r, local(r.PostForm.Get("back")))
}

// body returns the request's body: the fields that are given, as JSON.
func (a *act) body(values url.Values) string {
	var members []string
	for _, name := range a.answers {
		if value := values.Get(name); value != "" {
			members = append(members, quote(name)+":"+quote(value))
		}
	}
	if len(members) == 0 {
		return ""
	}
	return "{" + strings.Join(members, ",") + "}"
}
