package lambda_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
	"github.com/millrace/millrace/shared/worker/lambda"
)

const arn = "arn:aws:lambda:eu-central-1:123456789012:function:resize:live"

// invoke runs an attempt against a service that responds by handler.
func invoke(t *testing.T, handler http.HandlerFunc) queue.Result {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", server.URL)
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var target lambda.Target
	return target.Run(t.Context(), &worker.Attempt{
		ID: "id", Job: "/job", Number: 2, Payload: []byte(`{"n":1}`), Target: definition.Target{Lambda: &definition.LambdaTarget{ARN: arn}},
	}, new(worker.Log))
}

func TestInvocation(t *testing.T) {
	var path, kind string
	var sent struct {
		Job     string
		Attempt int
		Payload json.RawMessage
	}
	invoke(t, func(_ http.ResponseWriter, r *http.Request) {
		path, kind = r.URL.Path, r.Header.Get("X-Amz-Invocation-Type")
		_ = json.NewDecoder(r.Body).Decode(&sent)
	})
	if want, _ := url.PathUnescape("/2015-03-31/functions/" + arn + "/invocations"); path != want || kind != "RequestResponse" {
		t.Errorf("%s at %s, want RequestResponse at %s", kind, path, want)
	}
	if sent.Job != "/job" || sent.Attempt != 2 || string(sent.Payload) != `{"n":1}` {
		t.Errorf("sent %+v", sent)
	}
}

func TestResults(t *testing.T) {
	after := func(seconds string) http.Header {
		return http.Header{"X-Amzn-Errortype": {"TooManyRequestsException"}, "Retry-After": {seconds}}
	}
	tests := map[string]struct {
		status int
		header http.Header
		body   string
		want   queue.Result
	}{
		"output":   {200, nil, `{"a":1}`, queue.Result{Outcome: queue.OK, Output: json.RawMessage(`{"a":1}`)}},
		"null":     {200, nil, `null`, queue.Result{Outcome: queue.OK}},
		"too deep": {200, nil, strings.Repeat("[", 101) + strings.Repeat("]", 101), queue.Result{Outcome: queue.OK}},
		"too long": {200, nil, `"` + strings.Repeat("x", queue.MaxPayload) + `"`, queue.Result{Outcome: queue.OK}},
		"error": {
			200, http.Header{"X-Amz-Function-Error": {"Unhandled"}}, `{"errorType":"Disk","errorMessage":"full"}`,
			queue.Result{Outcome: queue.Failed, Message: "Disk: full"},
		},
		"error without a word": {
			200, http.Header{"X-Amz-Function-Error": {"Unhandled"}}, `1`,
			queue.Result{Outcome: queue.Failed, Message: "the function ended with an error (Unhandled)"},
		},
		"throttled":                   {429, after("7"), `{}`, queue.Result{Outcome: queue.Again, RetryDelay: 7 * time.Second}},
		"throttled for two hours":     {429, after("7200"), `{}`, queue.Result{Outcome: queue.Again, RetryDelay: 2 * time.Hour}},
		"throttled for a week":        {429, after("604800"), `{}`, queue.Result{Outcome: queue.Again, RetryDelay: 24 * time.Hour}},
		"throttled for ever":          {429, after("99999999999999999999"), `{}`, queue.Result{Outcome: queue.Again, RetryDelay: 24 * time.Hour}},
		"throttled for no known time": {429, after("soon"), `{}`, queue.Result{Outcome: queue.Again, RetryDelay: time.Second}},
		"missing":                     {404, http.Header{"X-Amzn-Errortype": {"ResourceNotFoundException"}}, `{}`, queue.Result{Outcome: queue.Failed}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls := 0
			got := invoke(t, func(w http.ResponseWriter, r *http.Request) {
				calls++
				_, _ = io.Copy(io.Discard, r.Body) // a response before the request's end would cut the connection
				for name, values := range test.header {
					w.Header()[name] = values
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			if test.status != 200 {
				contains(t, got.Message, "Exception")
				got.Message = ""
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if calls != 1 {
				t.Errorf("%d requests, want 1", calls)
			}
		})
	}
}

func contains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q does not say %q", text, want)
	}
}
