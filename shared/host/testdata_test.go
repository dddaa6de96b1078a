package host_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace/millrace/shared/host"
)

var quiet = slog.New(slog.DiscardHandler)

// invoker returns the invoker of a function that has all three entries unless f says otherwise.
func invoker(t *testing.T, f host.Function) *host.Invoker {
	t.Helper()
	f.Name, f.Log = "sample", quiet
	i, err := host.NewInvoker(f)
	if err != nil {
		t.Fatalf("NewInvoker() = %v", err)
	}
	return i
}

// call invokes a function that only has the handler with an HTTP API request.
func call(t *testing.T, handler http.HandlerFunc, in events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
	t.Helper()
	in.Version = "2.0"
	if in.RequestContext.HTTP.Method == "" {
		in.RequestContext.HTTP.Method = http.MethodGet
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := invoker(t, host.Function{HTTP: handler}).Invoke(t.Context(), raw)
	if err != nil {
		t.Fatalf("Invoke() = %v", err)
	}
	var out events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatalf("answer %s: %v", answer, err)
	}
	return out
}

// published returns the recorded payloads of aws-lambda-go, by file name.
func published(t *testing.T) map[string][]byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "events", "testdata", "*.json"))
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = raw
	}
	return all
}

func TestInvokePublishedPayloads(t *testing.T) {
	t.Parallel()
	const request, batch, nothing = "request", "batch", "nothing"
	want := map[string]string{
		"apigw-v2-request-iam.json":               request,
		"apigw-v2-request-jwt-authorizer.json":    request,
		"apigw-v2-request-lambda-authorizer.json": request,
		"apigw-v2-request-no-authorizer.json":     request,
		"lambda-urls-request.json":                request,
		"sqs-event.json":                          batch,
	}
	for name, raw := range published(t) {
		if strings.HasPrefix(name, "apigw-v2-custom-authorizer-v2") {
			continue // an authorizer's request looks like the request that it is about
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nothing
			f := host.Function{
				HTTP:     http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got = request }),
				Messages: func(context.Context, []host.Message) []host.Failure { got = batch; return nil },
				Tick:     func(context.Context, host.Tick) error { got = "tick"; return nil },
			}
			_, err := invoker(t, f).Invoke(t.Context(), raw)
			expected := want[name]
			if expected == "" {
				expected = nothing
			}
			if got != expected || (err != nil) != (expected == nothing) {
				t.Fatalf("Invoke() reached %s with error %v, want %s", got, err, expected)
			}
		})
	}
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
