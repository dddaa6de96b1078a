package e2e_test

import (
	"net/http"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// TestPagesOfOtherOrigins: a server lets pages of the origins that its configuration names use the API, and no others.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	const page = "https://app.example"
	s := serve(t, embedded(t), func(s *process.Server) { s.Env = append(s.Env, "MILLRACE_CONFIG={cors: {origins: ["+page+"]}}") })
	for origin, want := range map[string]string{page: page, "https://evil.example": ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.URL()+"/api/v1/jobs", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", http.MethodPost)
		response, err := process.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Access-Control-Allow-Origin"); response.StatusCode != http.StatusNoContent || got != want {
			t.Errorf("a preflight of %s: %d, allowed for %q, want %q", origin, response.StatusCode, got, want)
		}
	}
}
