package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

// What an operation that has no body is told in one would be dropped silently: it is refused, before anything is looked up.
func TestOperationsWithoutABodyTakeNone(t *testing.T) {
	t.Parallel()
	b := &bundle{api: everyAPI(api.Options{Tokens: tokens()})}
	doc, _ := description(t, b)
	found := 0
	for path, item := range doc.Paths {
		for method, op := range item {
			if method != "post" && method != "put" || op.RequestBody != nil {
				continue
			}
			found++
			method, target := strings.ToUpper(method), regexp.MustCompile(`{\w+}`).ReplaceAllString(path, "a")
			for body, location := range map[string]string{`{"x":1}`: "body.x", `{"payload":{}}`: "body.payload", "garbage": "body", "[]": "body"} {
				t.Log(method, path, body)
				wantProblem(t, b.as(t, access.Admin, method, target, body), http.StatusBadRequest, api.CodeInvalid, location)
			}
			wantProblem(t, b.as(t, access.Admin, method, target, "x", "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, api.CodeMediaType, "header.Content-Type")
		}
	}
	if found < 20 {
		t.Errorf("%d operations without a body, want more", found)
	}
}
