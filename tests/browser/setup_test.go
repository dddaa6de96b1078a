package browser_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

// browserVariable names the variable that has the browser.
const browserVariable = "MILLRACE_TEST_BROWSER"

func TestMain(m *testing.M) {
	if os.Getenv(browserVariable) == "" {
		os.Exit(m.Run())
	}
	os.Exit(process.RunBuilt(func() int { return containers.Run(m) }))
}

const token = "browser-token"

// server is a running millrace serve, or functions behind a gateway.
type server struct {
	t               *testing.T
	*process.Server        // nil where it is functions
	gateway         string // its URL, where it is functions
}

// URL returns the server's address.
func (s *server) URL() string {
	if s.Server == nil {
		return s.gateway
	}
	return s.Server.URL()
}

// serve starts a server on a fresh store with those definitions, which ends with the test. Without a browser the test is left out.
func serve(t *testing.T, definitions string) *server {
	t.Helper()
	if os.Getenv(browserVariable) == "" {
		t.Skip("left out: run by make test, where a browser is there")
	}
	path, err := filepath.Abs(definitions)
	if err != nil {
		t.Fatal(err)
	}
	s := &process.Server{
		Binary: os.Getenv(process.Variable), Store: "pebble:" + t.TempDir() + "/store", Token: token, Env: []string{"MILLRACE_CONFIG=" + path},
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("the server ended badly: %v", err)
		}
	})
	return &server{t: t, Server: s}
}

// ask makes a request to the API, with further headers, names and values in turn, and returns the response's fields.
func (s *server) ask(method, path string, body any, headers ...string) map[string]any {
	s.t.Helper()
	given, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(method, path, given, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// send is ask with a body as it is.
func (s *server) send(method, path string, given []byte, headers ...string) map[string]any {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL()+path, bytes.NewReader(given))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := process.Client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, text, err)
	}
	var fields map[string]any
	_ = json.Unmarshal(text, &fields) // a list or nothing has none
	return fields
}

// stamp returns the EventId of the newest event.
func (s *server) stamp() string {
	s.t.Helper()
	id, _ := s.ask("GET", "/jobscheduler/master/api/jobChain/?return=JobChainOverview", nil)["eventId"].(float64)
	return strconv.FormatInt(int64(id), 10)
}
