package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/millrace/millrace/shared/access"
)

// many is an act on all that the filter of a page selects. It is counted before it is confirmed, and shows its progress afterwards.
type many struct {
	name   string // in forms, as "jobs.retry"
	label  string // of its button
	says   string // what will happen to each
	path   string // of the request
	kind   string // the act, as the API names it
	filter []string
}

// allMany are all acts on many.
var allMany = []many{
	{"jobs.retry", "Run all again", "For each a new job like it is added; they themselves stay in the history.", "/api/v1/jobs:act", "retry", []string{"state", "topic"}},
	{"jobs.stop", "Stop all", "Each is asked to stop; one that has not started never does.", "/api/v1/jobs:act", "stop", []string{"state", "topic"}},
	{"jobs.remove", "Remove all", "Each goes to the history as dropped, even if it runs; one of the history is gone for good.", "/api/v1/jobs:act", "remove", []string{"state", "topic"}},
	{"orders.suspend", "Suspend all", "Each stays where it is, once its running step has ended.", "/api/v1/orders:act", "suspend", []string{"path"}},
	{"orders.resume", "Resume all", "Each that is suspended goes on from its node.", "/api/v1/orders:act", "resume", []string{"path"}},
}

// manyNamed returns the act on many of that name, nil if there is none.
func manyNamed(name string) *many {
	for i := range allMany {
		if allMany[i].name == name {
			return &allMany[i]
		}
	}
	return nil
}

// body returns the request's body for what the values select.
func (m *many) body(values url.Values, count bool) string {
	filter := map[string]string{}
	for _, name := range m.filter {
		if value := values.Get(name); value != "" {
			filter[name] = value
		}
	}
	body, _ := json.Marshal(map[string]any{"act": m.kind, "filter": filter, "dry_run": count}) // strings always can
	return string(body)
}

// question is what the page shows that asks before an act on many is begun.
type question struct {
	Name   string
	Label  string
	Says   string
	Count  json.Number
	Filter url.Values // hidden fields of the form, and what the page says of the selection
	Back   string
}

// asked returns the act on many that a request names and what it selects, or the refusal.
func (d *Dashboard) asked(values url.Values, token *access.Token) (*many, error) {
	m := manyNamed(values.Get("do"))
	switch {
	case m == nil:
		return nil, &refusal{Status: http.StatusNotFound, Detail: "There is no such act."}
	case !d.api.Permits(token.Role, http.MethodPost, m.path):
		return nil, &refusal{Status: http.StatusForbidden, Detail: fmt.Sprintf("The role %s may not do this.", token.Role)}
	}
	return m, nil
}

// confirmMany counts what an act would be done to, and shows it with the form that begins the act.
func (d *Dashboard) confirmMany(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	m, err := d.asked(values, tokenOf(r))
	var counted struct{ Count json.Number }
	if err == nil {
		err = d.ask(r.Context(), http.MethodPost, m.path, m.body(values, true), &counted)
	}
	if err != nil {
		d.fail(w, r, err)
		return
	}
	q := question{Name: m.name, Label: m.label, Says: m.says, Count: counted.Count, Filter: url.Values{}, Back: local(values.Get("back"))}
	for _, name := range m.filter {
		if value := values.Get(name); value != "" {
			q.Filter.Set(name, value)
		}
	}
	d.renderPage(w, r, http.StatusOK, frame{View: "many", Title: m.label, Data: q})
}

// beginMany begins an act that was confirmed, and sends the browser to its progress.
func (d *Dashboard) beginMany(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		d.fail(w, r, &refusal{Status: http.StatusBadRequest, Detail: "The form cannot be read."})
		return
	}
	m, err := d.asked(r.PostForm, tokenOf(r))
	var began struct{ ID string }
	if err == nil {
		err = d.ask(r.Context(), http.MethodPost, m.path, m.body(r.PostForm, false), &began)
	}
	if err != nil {
		d.fail(w, r, err)
		return
	}
	redirect(w, r, "/acts/"+url.PathEscape(began.ID))
}

// manyOf returns the acts on many that make sense for the jobs of a type: those of the history are run again, others are stopped.
func manyOf(kind string) string {
	switch kind {
	case "", "ALL", "ACTIVE", "QUEUED":
		return "jobs.stop jobs.remove"
	case "SUCCEEDED":
		return "jobs.remove"
	}
	return "jobs.retry jobs.remove"
}
