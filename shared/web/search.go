package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/shared/api"
)

// readFound reads the jobs of a type and a topic of which a field or a property is as the page's address says: name=value, or with another
// operator of the API before the name, as in >=priority=5 or ~message=timed out. It looks
// through as many as take little time, or with all=1 as one request may, and leads on.
func readFound(r *reading, kind, topic, where string) {
	template, err := templateOf(where)
	if err != nil {
		r.err = err
		return
	}
	body, _ := json.Marshal(map[string]any{"type": kind, "topic": topic, "templates": []any{template}}) // what was read as JSON, and texts
	if topic == "" {
		body, _ = json.Marshal(map[string]any{"type": kind, "templates": []any{template}})
	}
	target := "/api/v1/jobs/search"
	if cursor := r.query("cursor"); cursor != "" {
		target += "?" + url.Values{"cursor": {cursor}}.Encode()
	}
	ctx := r.r.Context()
	if r.query("all") == "" {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, 2*r.d.patience)
		defer leave()
		r.Data["further"] = r.with("all", "1")
	}
	found := make(map[string]any)
	header, err := r.d.request(ctx, http.MethodPost, target, string(body), &found)
	if err != nil && ctx.Err() != nil { // a single read takes longer
		header, err = r.d.request(r.r.Context(), http.MethodPost, target, string(body), &found)
	}
	cursor := cursorOf(header)
	if refused, is := errors.AsType[*refusal](err); is && refused.Status == http.StatusUnprocessableEntity && cursor != "" {
		err = nil // it has found nothing yet
	}
	if r.err = err; cursor != "" {
		r.Data["next"] = r.with("cursor", cursor)
	}
	r.Data["jobs"] = found
}

// templateOf returns what a person looks for as a template of the API: conditions, of which all are to hold, with && between them.
func templateOf(where string) (map[string]any, error) {
	template := make(map[string]any)
	for _, condition := range strings.Split(where, "&&") {
		name, member, err := conditionOf(strings.TrimSpace(condition))
		if err != nil {
			return nil, err
		}
		template[name] = member
	}
	return template, nil
}

// conditionOf returns a condition as a member of a template. A value that is JSON is taken as such, others as a text.
func conditionOf(where string) (name string, member any, err error) {
	operator := ""
	for _, o := range []string{"<=", ">=", "<", ">", "=", "~"} {
		if strings.HasPrefix(where, o) {
			operator = o
			break
		}
	}
	name, value, is := strings.Cut(strings.TrimPrefix(where, operator), "=")
	if !is || strings.TrimSpace(name) == "" {
		return "", nil, refuse(api.CodeInvalid, "Where: want NAME=VALUE of a field or a property, such as customer=ada; an operator may come first, as in "+
			">=priority=5, or ~message=timed out for a part of a text; and && stands between conditions that are all to hold, as in queue=mail && customer=ada.")
	}
	if operator != "~" && json.Valid([]byte(value)) {
		return cmp.Or(operator, "=") + strings.TrimSpace(name), json.RawMessage(value), nil
	}
	return cmp.Or(operator, "=") + strings.TrimSpace(name), value, nil
}
