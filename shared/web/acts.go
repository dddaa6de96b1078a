package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
)

// likes are the resources whose fields an act's form begins with, by the act's name.
var likes = map[string]string{"job.again": "/api/v1/jobs/{id}"}

// thens are the pages that come after acts, with the response's members as parameters. After others the page comes that they were done on.
var thens = map[string]string{"job.add": "/task/{id}", "job.again": "/task/{id}", "job.retry": "/task/{id}", "task.enqueue": "/task/{task_id}", "handler.emit": "/task/{id}"}

// permitted reports whether the role may do it.
func (d *Dashboard) permitted(token *access.Token, a *act.Act, values url.Values) bool {
	return d.api.Permits(token.Role, a.Method, a.Target(values))
}

// forbidden is the refusal of what the request's role may not do.
func (d *Dashboard) forbidden(r *http.Request) *refusal {
	return refuse(api.CodeForbidden, fmt.Sprintf("The role %s may not do this.", tokenOf(r).Role))
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
type field struct {
	act.Field
	Value string
}

// Long reports whether the field takes several lines.
func (f field) Long() bool { return f.Kind == act.Object || f.Kind == act.Any }

// confirm shows what an act will do, with the form that does it.
func (d *Dashboard) confirm(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	a := act.Named(values.Get("do"))
	if a == nil {
		d.fail(w, r, refuse(api.CodeNotFound, "There is no such act."))
		return
	}
	if !d.permitted(tokenOf(r), a, values) {
		d.fail(w, r, d.forbidden(r))
		return
	}
	c := confirmation{Act: a.Name, Label: a.Label, Sentence: a.Sentence(values), Back: local(values.Get("back"))}
	like := make(map[string]any)
	if from := likes[a.Name]; from != "" {
		if err := d.ask(r.Context(), http.MethodGet, act.Fill(from, values, url.PathEscape), "", &like); err != nil {
			d.fail(w, r, err)
			return
		}
	}
	for _, f := range a.Fields {
		c.Fields = append(c.Fields, field{f, cmp.Or(values.Get(f.Name), given(d.masks.hide(like[f.Name])))})
		if !slices.Contains(a.Parameters(), f.Name) {
			values.Del(f.Name)
		}
	}
	values.Del("do")
	values.Del("back")
	c.Values = values
	d.renderPage(w, r, http.StatusOK, frame{View: "confirm", Title: a.Label, Data: c})
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
	r.Body = http.MaxBytesReader(w, r.Body, maxDefinitions)
	if err := r.ParseForm(); err != nil {
		d.fail(w, r, refuse(api.CodeInvalid, "The form cannot be read."))
		return
	}
	a := act.Named(r.PostForm.Get("do"))
	if a == nil {
		d.fail(w, r, refuse(api.CodeNotFound, "There is no such act."))
		return
	}
	next, err := d.perform(r, a)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	redirect(w, r, next)
}

// unmask puts what the form did not show back into the values that it has sent.
func (d *Dashboard) unmask(r *http.Request, a *act.Act) error {
	from := likes[a.Name]
	if from == "" || len(d.masks) == 0 {
		return nil
	}
	like := make(map[string]any)
	if err := d.ask(r.Context(), http.MethodGet, act.Fill(from, r.PostForm, url.PathEscape), "", &like); err != nil {
		return err
	}
	for _, f := range a.Fields {
		r.PostForm.Set(f.Name, d.masks.restore(r.PostForm.Get(f.Name), like[f.Name]))
	}
	return nil
}

// perform makes the act's request with the values of a form, and returns the page that comes next.
func (d *Dashboard) perform(r *http.Request, a *act.Act) (next string, err error) {
	if !d.permitted(tokenOf(r), a, r.PostForm) {
		return "", d.forbidden(r)
	}
	if err := d.unmask(r, a); err != nil {
		return "", err
	}
	request, err := a.Request(r.PostForm)
	if wrong, is := errors.AsType[*act.FieldError](err); is {
		return "", refuse(api.CodeInvalid, wrong.Error()+". Go back to mend it.")
	}
	if err != nil {
		return "", err
	}
	then, leads := thens[a.Name]
	made := make(map[string]any)
	var out any
	if leads {
		out = &made
	}
	if _, err := d.send(r.Context(), request, out); err != nil {
		return "", err
	}
	if !leads {
		return local(r.PostForm.Get("back")), nil
	}
	values := url.Values{}
	for name, value := range made {
		values.Set(name, line(value))
	}
	return act.Fill(then, values, url.PathEscape), nil
}
