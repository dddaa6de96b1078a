package main

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/tests/gateway"
	"github.com/millrace/millrace/tests/samples"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	samples.ReplayTasks(t, "dashboard", function)
}

// TestDescriptionIsOfTheWholeAPI: on AWS, the gateway takes /openapi.json and /docs to this function, and it describes what a server in one process does, whichever
// function serves it; but for metrics, which are in CloudWatch there.
func TestDescriptionIsOfTheWholeAPI(t *testing.T) {
	t.Parallel()
	routes := gateway.ReadRoutes(t, "../../template.yaml")
	for _, path := range []string{"/openapi.json", "/docs", "/healthz", "/readyz", "/nothing"} {
		if function := routes.Function(http.MethodGet, path); function != "dashboard" {
			t.Errorf("%s goes to %q, which has not the whole API in it", path, function)
		}
	}
	place := host.PlaceOf(func(name string) string { return map[string]string{"AWS_LAMBDA_RUNTIME_API": "test"}[name] })
	s := service.NewTasks(service.New(place, config.Settings{}, memory.New(memory.Options{}), slog.New(slog.DiscardHandler)), local.New())
	f, err := function(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	whole := httptest.NewRecorder()
	api.New(api.Options{}, append(s.Resources(), api.Operations(api.Probes{Metrics: http.NotFoundHandler()}))...).
		ServeHTTP(whole, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", http.NoBody))
	want := slices.DeleteFunc(operations(t, whole.Body.Bytes()), func(operation string) bool { return operation == "get /metrics" })
	if diff := cmp.Diff(want, operations(t, described(t, f))); diff != "" {
		t.Errorf("operations (-server +function):\n%s", diff)
	}
}

// described returns the function's response to a request of the gateway for the description.
func described(t *testing.T, f host.Function) []byte {
	t.Helper()
	invoker, err := host.NewInvoker(f)
	if err != nil {
		t.Fatal(err)
	}
	in := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "$default", RawPath: "/openapi.json"}
	in.RequestContext.HTTP.Method, in.RequestContext.HTTP.Path = http.MethodGet, in.RawPath
	payload, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := invoker.Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	var response events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(raw, &response); err != nil || response.StatusCode != http.StatusOK || response.IsBase64Encoded {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return []byte(response.Body)
}

// operations returns the methods and paths that a description has.
func operations(t *testing.T, description []byte) (all []string) {
	t.Helper()
	var read struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(description, &read); err != nil {
		t.Fatal(err)
	}
	for path, item := range read.Paths {
		for _, method := range slices.Sorted(maps.Keys(item)) {
			all = append(all, method+" "+path)
		}
	}
	slices.Sort(all)
	if len(all) < 50 {
		t.Fatalf("only %d operations: %v", len(all), all)
	}
	return all
}
