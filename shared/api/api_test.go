package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

func TestElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		method, path string
		status       int
		code         api.Code
		allow        string
	}{
		"unknown":             {"GET", base + "/nothing", 404, api.CodeNotFound, ""},
		"unknown, POST":       {"POST", "/api/v1/nothing", 404, api.CodeNotFound, ""},
		"event, PUT":          {"PUT", eventPath, 405, api.CodeMethod, "GET, HEAD, POST, OPTIONS"},
		"event, DELETE":       {"DELETE", eventPath, 405, api.CodeMethod, "GET, HEAD, POST, OPTIONS"},
		"a collection, GET":   {"GET", base + "/order", 405, api.CodeMethod, "POST, OPTIONS"},
		"a folder, POST":      {"POST", base + "/order/a/", 405, api.CodeMethod, "GET, HEAD, OPTIONS"},
		"a method of nothing": {"BREW", base + "/order", 405, api.CodeMethod, "POST, OPTIONS"},
		"health, POST":        {"POST", "/healthz", 405, api.CodeMethod, "GET, HEAD, OPTIONS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.as(t, access.Admin, c.method, c.path, "")
			wantProblem(t, got, c.status, c.code)
			if got.Header.Get("Allow") != c.allow {
				t.Errorf("Allow = %q, want %q", got.Header.Get("Allow"), c.allow)
			}
		})
	}
}

func TestOptionsAndHead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	options := b.as(t, access.Viewer, "OPTIONS", eventPath, "")
	if options.StatusCode != http.StatusNoContent || options.Header.Get("Allow") != "GET, HEAD, POST, OPTIONS" {
		t.Errorf("OPTIONS = %d, Allow %q", options.StatusCode, options.Header.Get("Allow"))
	}
	for _, accept := range []string{"application/json", sse} { // neither waits
		head := b.as(t, access.Viewer, "HEAD", eventPath+"?after=9007199254740992&timeout=3600", "", "Accept", accept)
		if head.StatusCode != 200 || head.Header.Get("Content-Type") != accept || head.body != "" {
			t.Errorf("HEAD = %d %s %q", head.StatusCode, head.Header.Get("Content-Type"), head.body)
		}
	}
	if head := b.as(t, access.Viewer, "HEAD", eventPath, ""); head.StatusCode != 400 {
		t.Errorf("HEAD of a bad query = %d, want 400", head.StatusCode)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for given, kept := range map[string]bool{
		"abc-1.2_X":                 true,
		strings.Repeat("a", 64):     true,
		"":                          false,
		strings.Repeat("a", 65):     false,
		"two words":                 false,
		"line\\nbreak":              false,
		`{"injected":"into a log"}`: false,
	} {
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0", "", "X-Request-Id", given).Header.Get("X-Request-Id")
		if kept != (got == given) || got == "" {
			t.Errorf("X-Request-Id %q is answered with %q", given, got)
		}
	}
}

// panicking breaks in a way that no handler foresees.
type panicking struct{ *fakeJournal }

func (panicking) Emit(context.Context, []event.Event, *journal.Idempotency) (journal.Receipt, error) {
	panic("the inside of a failure")
}

func (panicking) Follow(context.Context, journal.Request, time.Duration) iter.Seq2[journal.Answer, error] {
	return func(yield func(journal.Answer, error) bool) {
		_ = yield(journal.Answer{Events: []event.Event{{ID: 1, Type: "A"}}}, nil) && yield(journal.Answer{}, errors.New("broken in the middle"))
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api = api.New(api.Options{Tokens: tokens(), Log: b.log()}, api.Emit(panicking{b.journal}))
	got := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"}]`)
	wantProblem(t, got, 500, api.CodeInternal)
	if strings.Contains(got.body, "inside") || !strings.Contains(b.logs.String(), "the inside of a failure") {
		t.Errorf("answer %s, log %s", got.body, b.logs)
	}
}

// A response that has begun cannot become a problem; it is broken off, so that no client takes it for whole.
func TestFailureInTheMiddle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api = api.New(api.Options{Tokens: tokens(), Log: b.log(), CanStream: true}, api.Events(panicking{b.journal}))
	defer func() {
		if reason, _ := recover().(error); !errors.Is(reason, http.ErrAbortHandler) {
			t.Errorf("recovered %v, want ErrAbortHandler", reason)
		}
		if !strings.Contains(b.logs.String(), "broken in the middle") {
			t.Errorf("the log lacks the cause: %s", b.logs)
		}
	}()
	b.as(t, access.Viewer, "GET", eventPath+"?after=0", "", "Accept", ndjson)
}

// A process whose clock is off is not ready, and tells every client by how much.
func TestReadinessOfAClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.api = api.New(api.Options{Log: b.log()}, api.Operations(api.Probes{
		Ready: func(context.Context) error { return errors.Join(nil, &clock.Skew{Offset: -15 * time.Minute}) },
	}))
	got := b.as(t, "", "GET", "/readyz", "")
	wantProblem(t, got, 503, api.CodeUnavailable)
	if !strings.Contains(got.body, `"detail":"not ready to serve: the clock of this process is 15m0s behind the store's`) {
		t.Errorf("readyz = %s, want the difference", got.body)
	}
}

// A process that is not ready says which part of it is not, and keeps to its log what may name hosts and users.
func TestReadinessSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	secret := errors.New("user=secret")
	for want, err := range map[string]error{
		"": secret,
		": the store cannot be used; see the log": errors.Join(nil, &api.NotReady{Public: "the store cannot be used", Err: secret}),
	} {
		b := setup(t)
		b.api = api.New(api.Options{Log: b.log()}, api.Operations(api.Probes{Ready: func(context.Context) error { return err }}))
		got := b.as(t, "", "GET", "/readyz", "")
		wantProblem(t, got, 503, api.CodeUnavailable)
		if !strings.Contains(got.body, `"detail":"not ready to serve`+want+`"`) {
			t.Errorf("readyz after %v = %s, want %q and no more", err, got.body, want)
		}
		if !strings.Contains(b.logs.String(), "user=secret") || !errors.Is(err, secret) {
			t.Errorf("the log lacks %v: %s", err, b.logs)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fail := errors.New("no route to the store")
	b.api = api.New(api.Options{Log: b.log()}, api.Operations(api.Probes{
		Ready: func(context.Context) error { return fail },
	}))
	if got := b.as(t, "", "GET", "/healthz", ""); got.StatusCode != 200 || strings.TrimSpace(got.body) != `{"status":"ok"}` {
		t.Errorf("healthz = %d %s", got.StatusCode, got.body)
	}
	got := b.as(t, "", "GET", "/readyz", "")
	wantProblem(t, got, 503, api.CodeUnavailable)
	if strings.Contains(got.body, "route to the store") || got.Header.Get("Retry-After") == "" {
		t.Errorf("readyz = %s, Retry-After %q", got.body, got.Header.Get("Retry-After"))
	}
	if !strings.Contains(b.logs.String(), "no route to the store") {
		t.Errorf("the log lacks the cause: %s", b.logs)
	}
}

// The metrics take a token that may read, or none where they are declared open.
func TestMetricsNeedAToken(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		b := setup(t)
		b.api = api.New(api.Options{Tokens: tokens(), Log: b.log()}, api.Operations(api.Probes{
			OpenMetrics: open, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up 1\n") }),
		}))
		for role, status := range map[access.Role]int{"": 401, access.Producer: 403, access.Worker: 403, access.Viewer: 200, access.Operator: 200, access.Admin: 200} {
			if open {
				status = 200
			}
			got := b.as(t, role, "GET", "/metrics", "")
			if got.StatusCode != status || status == 200 && got.body != "up 1\n" {
				t.Errorf("metrics for %q, open %v = %d %s, want %d", role, open, got.StatusCode, got.body, status)
			}
			if status == 401 && got.Header.Get("WWW-Authenticate") == "" {
				t.Error("no WWW-Authenticate")
			}
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A","note":"confidential"}]`, "X-Request-Id", "r-1")
	var line map[string]any
	if err := json.Unmarshal(b.logs.Bytes(), &line); err != nil {
		t.Fatalf("log %s: %v", b.logs, err)
	}
	delete(line, "time")
	delete(line, "took")
	want := map[string]any{
		"level": "DEBUG", "msg": "request", "request_id": "r-1", "route": "POST " + eventPath, "status": 201.0, "client": "producer",
		"bytes": 31.0,
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Error(diff)
	}
}

// A client that leaves while it waits is no failure of the server; a host that ends the request tells the client to come back.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	m := &measured{}
	b := setup(t, func(o *api.Options) { o.Metrics = m })
	ctx, leave := context.WithCancel(t.Context())
	leave()
	got := b.do(t, request(t, access.Viewer, "GET", eventPath+"?after=0&timeout=60", "").WithContext(ctx))
	wantProblem(t, got, 503, api.CodeUnavailable)
	if last := m.lines[len(m.lines)-1]; last != "GET "+eventPath+" 499" {
		t.Errorf("measured %q, want 499", last)
	}
	if strings.Contains(b.logs.String(), "ERROR") {
		t.Errorf("logged as a failure: %s", b.logs)
	}
}

// measured notes what it is told.
type measured struct{ lines []string }

func (m *measured) Request(route string, status int, _ time.Duration) {
	m.lines = append(m.lines, fmt.Sprint(route, " ", status))
}

func (m *measured) Outcome(operation, outcome string, events int) {
	m.lines = append(m.lines, fmt.Sprint(operation, " ", outcome, " ", events))
}

func (m *measured) Following(change int) { m.lines = append(m.lines, fmt.Sprint("following ", change)) }

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := &measured{}
	b := setup(t, func(o *api.Options) { o.Metrics = m })
	b.emit(t, three)
	b.as(t, access.Viewer, "GET", eventPath+"?after=0&limit=2&timeout=9", "")
	b.as(t, access.Viewer, "GET", base+"/object/secret/path?return=Event&after=0", "")
	b.as(t, access.Viewer, "GET", base+"/no/such/path", "")
	want := []string{
		"emit appended 3", "POST " + eventPath + " 201",
		"following 1", "read events 2", "following -1", "GET " + eventPath + " 200",
		"read empty 0", "GET " + base + "/object/{path} 200",
		"none 404",
	}
	if diff := cmp.Diff(want, m.lines); diff != "" {
		t.Error(diff)
	}
}
