package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	a := api.New(api.Options{Tokens: []access.Token{
		access.NewToken("reader", access.Viewer, "looks"), access.NewToken("boss", access.Operator, "acts"),
	}})
	guarded := a.Guard(api.Operate, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	for secret, want := range map[string]int{"": 401, "unknown": 401, "looks": 403, "acts": 204} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		if secret != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with the token %q: status %d, want %d", secret, w.Code, want)
		}
	}
}
