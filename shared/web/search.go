package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// readFound reads the jobs of a type and a topic of which a field or a property is as the page's address says: name=value, or with another
// operator of the API before the name, as in >=priority=5.
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
	found := make(map[string]any)
	_, r.err = r.d.request(r.r.Context(), http.MethodPost, "/api/v1/jobs/search", string(body), &found)
	r.Data["jobs"] = found
}

// templateOf returns what a person looks for as a template of the API. A value that is JSON is taken as such, others as a text.
func templateOf(where string) (map[string]any, error) {
	operator := ""
	for _, o := range []string{"<=", ">=", "<", ">", "="} {
		if strings.HasPrefix(where, o) {
			operator = o
			break
		}
	}
	name, value, is := strings.Cut(strings.TrimPrefix(where, operator), "=")
	if !is || strings.TrimSpace(name) == "" {
		return nil, &refusal{Status: http.StatusBadRequest, Detail: "Where: want NAME=VALUE of a field or a property, such as customer=ada; an operator may come first, as in >=priority=5."}
	}
	if operator == "" {
		operator = "="
	}
	var member any = value
	if json.Valid([]byte(value)) {
		member = json.RawMessage(value)
	}
	return map[string]any{operator + strings.TrimSpace(name): member}, nil
}

// readSchedules reads a page of the schedules, and tries the expression that the page's address has.
func readSchedules(r *reading) {
	r.list("schedules", "/api/v1/schedules", "cursor")
	expression := r.query("expr")
	r.Data["expr"], r.Data["tz"] = expression, r.query("tz")
	if expression == "" || r.err != nil {
		return
	}
	query := url.Values{"expr": {expression}, "count": {"5"}}
	if zone := r.query("tz"); zone != "" {
		query.Set("tz", zone)
	}
	r.get("tried", "/api/v1/cron/next?"+query.Encode())
	if refused, is := errors.AsType[*refusal](r.err); is && refused.Status == http.StatusBadRequest {
		r.err, r.Data["wrong"] = nil, refused.Detail
	}
}
