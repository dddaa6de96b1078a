package service_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/memory"
)

// Every function lets pages of the origins that its settings name use the API.
func TestFunctionsKnowTheOrigins(t *testing.T) {
	t.Parallel()
	const page = "https://app.example"
	settings := config.Settings{CORS: config.CORS{Origins: []string{page}}}
	s := service.New(host.PlaceOf(func(string) string { return "" }), settings, memory.New(memory.Options{}), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = s.Close() })
	r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "/api/v1/jobs", http.NoBody)
	r.Header.Set("Origin", page)
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	w := httptest.NewRecorder()
	s.API().ServeHTTP(w, r)
	if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != http.StatusNoContent || got != page {
		t.Errorf("a preflight of %s: %d, allowed for %q", page, w.Code, got)
	}
}
