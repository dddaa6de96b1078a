package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
)

// maxDefinitions bounds the body of a form with definitions, which may be as long as the API takes them, and longer as a form.
const maxDefinitions = 3 << 20

// plan shows what definitions that a form has would change, with the form that applies them.
func (d *Dashboard) plan(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDefinitions)
	if err := r.ParseForm(); err != nil {
		d.fail(w, r, refuse(api.CodeInvalid, "The form cannot be read."))
		return
	}
	request, err := act.Named("definitions.apply").Request(r.PostForm)
	request.Target += "?dry_run=true"
	changes := make(map[string]any)
	if err == nil {
		_, err = d.send(r.Context(), request, &changes)
	}
	if err != nil {
		d.fail(w, r, err)
		return
	}
	given := r.PostForm.Get("definitions")
	d.renderPage(w, r, http.StatusOK, frame{View: "plan", Title: "What would change", Data: map[string]any{
		"changes": changes, "inside": d.inside(r.Context(), given), "definitions": given,
	}})
}

// inside returns what differs within each object that would be replaced, by its key. It only adds detail: which objects change is for the
// API to say.
func (d *Dashboard) inside(ctx context.Context, given string) map[string][]definition.Difference {
	var now json.RawMessage
	if err := d.ask(ctx, http.MethodGet, "/api/v1/definitions", "", &now); err != nil {
		return nil
	}
	before, err := definition.Read("the server", now)
	if err != nil {
		return nil
	}
	after, err := definition.Read("the form", []byte(given))
	if err != nil {
		return nil
	}
	return definition.Differences(before, after)
}
