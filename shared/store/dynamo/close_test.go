package dynamo_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/shared/store/dynamo"
)

// Not parallel: it counts goroutines.
func TestCloseLeavesNothingRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Write([]byte("{}"))
	}))
	cfg := nowhere()
	cfg.BaseEndpoint = &server.URL
	s, err := dynamo.Open(t.Context(), dynamo.Options{Prefix: "test", AWS: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	server.Close()
	goleak.VerifyNone(t, before)
}
