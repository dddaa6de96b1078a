package web

import (
	"encoding/json"
	"net/http"
	"strings"
)

// readFound reads the jobs of a type and a topic of which a field or a property is as the page's address says: name=value, or with another
// operator of the API before the name, as in >=priority=5 or ~message=timed out.
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
	for _, o := range []string{"<=", ">=", "<", ">", "=", "~"} {
		if strings.HasPrefix(where, o) {
			operator = o
			break
		}
	}
	name, value, is := strings.Cut(strings.TrimPrefix(where, operator), "=")
	if !is || strings.TrimSpace(name) == "" {
		return nil, &refusal{Status: http.StatusBadRequest, Detail: "Where: want NAME=VALUE of a field or a property, such as customer=ada; an operator may come first, as in >=priority=5, or ~message=timed out for a part of a text."}
	}
	if operator == "" {
		operator = "="
	}
	var member any = value
	if operator != "~" && json.Valid([]byte(value)) {
		member = json.RawMessage(value)
	}
	return map[string]any{operator + strings.TrimSpace(name): member}, nil
}
