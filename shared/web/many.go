package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
)

// question is what the page shows that asks before an act on many is begun.
type question struct {
	Name   string
	Label  string
	Says   string
	Count  json.Number
	Limit  string // of the form that counts again, as it came
	Rate   string
	Least  string     // how long it takes at least; "": hardly any time
	Filter url.Values // hidden fields of the form, and what the page says of the selection
	Back   string
}

// asked returns the act on many that a request names and what it selects, or the refusal.
func (d *Dashboard) asked(values url.Values, token *access.Token) (*act.Many, error) {
	m := act.ManyNamed(values.Get("do"))
	switch {
	case m == nil:
		return nil, refuse(api.CodeNotFound, "There is no such act.")
	case !d.api.Permits(token.Role, http.MethodPost, m.Path):
		return nil, refuse(api.CodeForbidden, fmt.Sprintf("The role %s may not do this.", token.Role))
	}
	return m, nil
}

// confirmMany counts what an act would be done to, and shows it with the form that begins the act.
func (d *Dashboard) confirmMany(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	m, err := d.asked(values, tokenOf(r))
	var counted struct{ Count json.Number }
	if err == nil {
		_, err = d.send(r.Context(), m.Request(values, true), &counted)
	}
	if err != nil {
		d.fail(w, r, err)
		return
	}
	q := question{Name: m.Name, Label: m.Label, Says: m.Says, Count: counted.Count, Filter: url.Values{}, Back: local(values.Get("back")),
		Limit: values.Get("limit"), Rate: values.Get("per_second"), Least: least(counted.Count, values.Get("per_second"))}
	for _, name := range m.Filter {
		if value := values.Get(name); value != "" {
			q.Filter.Set(name, value)
		}
	}
	d.renderPage(w, r, http.StatusOK, frame{View: "many", Title: m.Label, Data: q})
}

// least returns how long an act on so many takes at least at a rate, "" without one, or if that is less than a second.
func least(count json.Number, rate string) string {
	n, _ := count.Int64()
	perSecond, err := strconv.ParseInt(rate, 10, 64)
	if err != nil || perSecond < 1 || n <= perSecond { // the API has refused what is no rate
		return ""
	}
	return (time.Duration((n-1)/perSecond) * time.Second).String()
}

// beginMany begins an act that was confirmed, and sends the browser to its progress.
func (d *Dashboard) beginMany(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		d.fail(w, r, refuse(api.CodeInvalid, "The form cannot be read."))
		return
	}
	m, err := d.asked(r.PostForm, tokenOf(r))
	var began struct{ ID string }
	if err == nil {
		_, err = d.send(r.Context(), m.Request(r.PostForm, false), &began)
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
