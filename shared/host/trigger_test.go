package host_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/host"
)

// taken is what a function received.
type taken struct {
	Ticks    []host.Tick
	Messages []host.Message
}

// delivery posts a CloudEvent to a function and returns the response.
func delivery(t *testing.T, f host.Function, header map[string]string, content string) *httptest.ResponseRecorder {
	t.Helper()
	f.Name, f.Log = "sample", quiet
	if f.Guard == nil {
		f.Guard = func(next http.Handler) http.Handler { return next }
	}
	handler, err := host.NewHandler(f)
	if err != nil {
		t.Fatalf("NewHandler() = %v", err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(content))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// collector returns a function that accepts everything, and what it received.
func collector() (host.Function, *taken) {
	all := &taken{}
	return host.Function{
		Tick: func(_ context.Context, tick host.Tick) error { all.Ticks = append(all.Ticks, tick); return nil },
		Messages: func(_ context.Context, batch []host.Message) []host.Failure {
			all.Messages = append(all.Messages, batch...)
			return nil
		},
	}, all
}

var (
	structured = map[string]string{"Content-Type": "application/cloudevents+json; charset=utf-8"}
	batched    = map[string]string{"Content-Type": "application/cloudevents-batch+json"}
)

func TestCloudEventsDelivered(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)
	tests := []struct {
		name, content string
		header        map[string]string
		want          taken
	}{
		{"tick, structured", `{"specversion":"1.0","id":"1","source":"/cron","type":"timer","time":"2026-02-03T04:05:00Z","data":{"tick":"sweep"}}`,
			structured, taken{Ticks: []host.Tick{{Name: "sweep", At: due}}}},
		{"tick, binary", `{"tick":"sweep"}`, map[string]string{
			"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/cron", "Ce-Type": "timer",
			"Ce-Time": "2026-02-03T04:05:00Z"}, taken{Ticks: []host.Tick{{Name: "sweep", At: due}}}},
		{"tick of a ping source without data", `{"specversion":"1.0","id":"1","source":"/ping","type":"dev.knative.sources.ping","time":"2026-02-03T04:05:00Z"}`,
			structured, taken{Ticks: []host.Tick{{Name: "sample", At: due}}}},
		{"tick that says when it was due", `{"specversion":"1.0","id":"1","source":"/cron","type":"timer","data":{"tick":"sweep","time":"2026-02-03T04:05:00Z"}}`,
			structured, taken{Ticks: []host.Tick{{Name: "sweep", At: due}}}},
		{"message, structured, with extensions", `{"specversion":"1.0","id":"m","source":"/q","type":"notice","subject":"s","partitionkey":"p","weight":3,"data":{"a":1}}`,
			structured, taken{Messages: []host.Message{{ID: "m", Body: []byte(`{"a":1}`), Attributes: map[string]string{
				"source": "/q", "type": "notice", "subject": "s", "partitionkey": "p", "weight": "3"}}}}},
		{"message, text", `{"specversion":"1.0","id":"m","source":"/q","type":"notice","data":"hé"}`,
			structured, taken{Messages: []host.Message{{ID: "m", Body: []byte("hé"), Attributes: map[string]string{"source": "/q", "type": "notice"}}}}},
		{"message, Base64", `{"specversion":"1.0","id":"m","source":"/q","type":"notice","data_base64":"AP8="}`,
			structured, taken{Messages: []host.Message{{ID: "m", Body: []byte{0, 255}, Attributes: map[string]string{"source": "/q", "type": "notice"}}}}},
		{"batch of a message and a tick", `[{"specversion":"1.0","id":"m","source":"/q","type":"notice"},
			{"specversion":"1.0","id":"1","source":"/cron","type":"timer","time":"2026-02-03T04:05:00Z","data":{"tick":"sweep"}}]`,
			batched, taken{
				Ticks:    []host.Tick{{Name: "sweep", At: due}},
				Messages: []host.Message{{ID: "m", Attributes: map[string]string{"source": "/q", "type": "notice"}}},
			}},
		{"empty batch", `[]`, batched, taken{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, got := collector()
			w := delivery(t, f, tt.header, tt.content)
			if w.Code != http.StatusNoContent {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloudEventsNotUnderstood(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, content string
		header        map[string]string
		want          string
	}{
		{"no CloudEvent", `{"tick":"sweep"}`, map[string]string{"Content-Type": "application/json"}, "not a CloudEvent"},
		{"not JSON", `x`, structured, "not a JSON object"},
		{"batch that is none", `{}`, batched, "not a JSON array"},
		{"batch with a bad one", `[{"specversion":"1.0","id":"1","source":"/"}]`, batched, "event 0 of the batch: the CloudEvent has no type"},
		{"no id", `{"specversion":"1.0","source":"/","type":"t"}`, structured, "has no id"},
		{"other version", `{"specversion":"0.3","id":"1","source":"/","type":"t"}`, structured, "0.3"},
		{"bad time", `{"specversion":"1.0","id":"1","source":"/","type":"t","time":"noon"}`, structured, "noon"},
		{"bad Base64", `{"specversion":"1.0","id":"1","source":"/","type":"t","data_base64":"%"}`, structured, "data_base64"},
		{"Base64 that is no string", `{"specversion":"1.0","id":"1","source":"/","type":"t","data_base64":1}`, structured, "data_base64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, got := collector()
			w := delivery(t, f, tt.header, tt.content)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("answer %d %s, want a 400 with %q", w.Code, w.Body, tt.want)
			}
			if diff := cmp.Diff(taken{}, *got); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloudEventsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	f, got := collector()
	f.Messages = nil
	w := delivery(t, f, batched, `[{"specversion":"1.0","id":"1","source":"/","type":"t","data":{"tick":"sweep"}},
		{"specversion":"1.0","id":"2","source":"/","type":"notice"}]`)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "takes ticks") || len(got.Ticks) != 0 {
		t.Errorf("answer %d %s after %d ticks, want a 400 and none", w.Code, w.Body, len(got.Ticks))
	}
}

func TestCloudEventsFailureIsRepeatable(t *testing.T) {
	t.Parallel()
	fail := errors.New("secret inside")
	functions := map[string]host.Function{
		"tick fails":     {Tick: func(context.Context, host.Tick) error { return fail }},
		"tick panics":    {Tick: func(context.Context, host.Tick) error { panic("boom") }},
		"message fails":  {Messages: func(_ context.Context, b []host.Message) []host.Failure { return []host.Failure{{b[0].ID, fail}} }},
		"message panics": {Messages: func(context.Context, []host.Message) []host.Failure { panic("boom") }},
	}
	for name, f := range functions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := `{"specversion":"1.0","id":"1","source":"/","type":"t"}`
			if f.Tick != nil {
				content = `{"specversion":"1.0","id":"1","source":"/","type":"t","data":{"tick":"sweep"}}`
			}
			w := delivery(t, f, structured, content)
			if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("answer %d %s, want a 500 that says nothing of the inside", w.Code, w.Body)
			}
		})
	}
}

func TestCloudEventsTooLarge(t *testing.T) {
	t.Parallel()
	f, _ := collector()
	w := delivery(t, f, structured, `{"data":"`+strings.Repeat("x", 1<<20)+`"}`)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", w.Code)
	}
}

func TestCloudEventsAreGuarded(t *testing.T) {
	t.Parallel()
	f, got := collector()
	f.Guard = func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	}
	w := delivery(t, f, structured, `{"specversion":"1.0","id":"1","source":"/","type":"t","data":{"tick":"sweep"}}`)
	if w.Code != http.StatusUnauthorized || len(got.Ticks) != 0 {
		t.Errorf("status %d after %d ticks, want 401 and none", w.Code, len(got.Ticks))
	}
}

func TestNewHandlerWantsAGuard(t *testing.T) {
	t.Parallel()
	f, _ := collector()
	if _, err := host.NewHandler(f); err == nil {
		t.Error("NewHandler(unguarded) = nil, want an error")
	}
	if _, err := host.NewHandler(host.Function{}); err == nil {
		t.Error("NewHandler(nothing) = nil, want an error")
	}
}

func TestHandlerKeepsTheFunctionsOwnPaths(t *testing.T) {
	t.Parallel()
	f, _ := collector()
	f.Guard = func(next http.Handler) http.Handler { return next }
	f.HTTP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	handler, err := host.NewHandler(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"GET /", "POST /x", "GET /healthz"} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		if w.Code != http.StatusTeapot {
			t.Errorf("%s: status %d, want the function's own", target, w.Code)
		}
	}
}
