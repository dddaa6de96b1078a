package worker_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

var secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of at least 24 bytes"))

func newHTTP(t *testing.T, private bool) *worker.HTTP {
	t.Helper()
	target, err := worker.NewHTTP(worker.HTTPOptions{Secret: secret, AllowPrivate: private})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

// post runs the lease's task on an address.
func post(t *testing.T, e *engine, target *worker.HTTP, url string, timeout time.Duration, l queue.Lease) {
	t.Helper()
	worker.NewRunner(worker.Options{
		Engine: e, Definitions: declared(definition.Target{HTTP: &definition.HTTPTarget{URL: url}}, timeout),
		Targets: worker.Targets{HTTP: target}, URL: "https://millrace.example",
	}).Run(t.Context(), l)
}

// fresh returns a lease of a task that was created now.
func fresh() queue.Lease {
	l := lease("/job", 1)
	l.Task.Created = time.Now().UnixMicro()
	return l
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestHTTPResults(t *testing.T) {
	t.Parallel()
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	tests := map[string]struct {
		status int
		header http.Header
		body   string
		want   queue.Result
	}{
		"done":                  {200, nil, "", queue.Result{Outcome: queue.OK}},
		"output":                {201, nil, " {\"a\": 1}\n", queue.Result{Outcome: queue.OK, Output: json.RawMessage(`{"a": 1}`)}},
		"not JSON":              {200, nil, "<p>thanks</p>", queue.Result{Outcome: queue.OK}},
		"too long":              {200, nil, `"` + strings.Repeat("x", 256<<10) + `"`, queue.Result{Outcome: queue.OK}},
		"too deep":              {200, nil, strings.Repeat("[", 101) + strings.Repeat("]", 101), queue.Result{Outcome: queue.OK}},
		"conflict":              {409, nil, "", queue.Result{Outcome: queue.Cancel, Code: 409, Message: "HTTP 409 Conflict"}},
		"gone":                  {410, nil, "", queue.Result{Outcome: queue.Cancel, Code: 410, Message: "HTTP 410 Gone"}},
		"unprocessable":         {422, nil, "no name", queue.Result{Outcome: queue.Cancel, Code: 422, Message: "HTTP 422 Unprocessable Entity: no name"}},
		"too many":              {429, header("Retry-After", "120"), "", queue.Result{Outcome: queue.Again, Code: 429, Message: "HTTP 429 Too Many Requests", RetryDelay: 2 * time.Minute}},
		"unavailable":           {503, nil, "", queue.Result{Outcome: queue.Again, Code: 503, Message: "HTTP 503 Service Unavailable"}},
		"at once":               {503, header("Retry-After", "0"), "", queue.Result{Outcome: queue.Again, Code: 503, Message: "HTTP 503 Service Unavailable", RetryDelay: time.Second}},
		"a date that is past":   {503, header("Retry-After", "Fri, 02 Jan 2026 03:04:05 GMT"), "", queue.Result{Outcome: queue.Again, Code: 503, Message: "HTTP 503 Service Unavailable", RetryDelay: time.Second}},
		"nonsense":              {503, header("Retry-After", "-5"), "", queue.Result{Outcome: queue.Again, Code: 503, Message: "HTTP 503 Service Unavailable"}},
		"redirect":              {302, header("Location", "/elsewhere"), "", queue.Result{Outcome: queue.Failed, Code: 302, Message: "HTTP 302 Found"}},
		"missing":               {404, nil, "", queue.Result{Outcome: queue.Failed, Code: 404, Message: "HTTP 404 Not Found"}},
		"error":                 {500, nil, strings.Repeat("é", 400), queue.Result{Outcome: queue.Failed, Code: 500, Message: "HTTP 500 Internal Server Error: " + strings.Repeat("é", 250) + "…"}},
		"a code without name":   {599, nil, "\xff", queue.Result{Outcome: queue.Failed, Code: 599, Message: "HTTP 599: \uFFFD"}},
		"accepted is for later": {202, nil, "", queue.Result{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				for name, values := range test.header {
					w.Header()[name] = values
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			e, l := newEngine(), fresh()
			post(t, e, newHTTP(t, true), url, 0, l)
			var got queue.Result
			if results := e.results[l.Token]; len(results) == 1 {
				got = results[0]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			explained(t, e, l.Token, got)
			if calls != 1 {
				t.Errorf("%d requests, want 1", calls)
			}
		})
	}
}

func TestHTTPRetryAfterDate(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	e, l := newEngine(), fresh()
	post(t, e, newHTTP(t, true), url, 0, l)
	if got := e.results[l.Token][0]; got.Outcome != queue.Again || got.RetryDelay < 59*time.Minute || got.RetryDelay > time.Hour {
		t.Errorf("%s after %v, want again after an hour", got.Outcome, got.RetryDelay)
	}
}

// TestHTTPPatience: a target may put a task off for a day, and no longer.
func TestHTTPPatience(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "99999999999999999999")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	for _, test := range []struct {
		putOff time.Duration // so long, 0: not yet
		want   queue.Outcome
		most   time.Duration
	}{
		{0, queue.Again, 24 * time.Hour},
		{23 * time.Hour, queue.Again, time.Hour},
		{24*time.Hour + time.Second, queue.Failed, 0},
	} {
		e, l := newEngine(), fresh()
		l.Task.Created -= (1000 * time.Hour).Microseconds() // however old it is
		if test.putOff > 0 {
			l.Task.PutOff = time.Now().Add(-test.putOff).UnixMicro()
		}
		post(t, e, newHTTP(t, true), url, 0, l)
		if got := e.results[l.Token][0]; got.Outcome != test.want || got.RetryDelay > test.most || got.RetryDelay < test.most-time.Minute {
			t.Errorf("put off for %v: %s after %v, want %s after %v", test.putOff, got.Outcome, got.RetryDelay, test.want, test.most)
		}
	}
}

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	var header http.Header
	var body []byte
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	})
	e, l := newEngine(), fresh()
	l.Task.Created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()
	l.Task.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	post(t, e, newHTTP(t, true), url, 0, l)

	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(body, header); err != nil {
		t.Errorf("the signature: %v", err)
	}
	got := map[string]string{}
	for _, name := range []string{"Content-Type", "User-Agent", "Webhook-Id", "Traceparent"} {
		got[name] = header.Get(name)
	}
	want := map[string]string{
		"Content-Type": "application/json", "User-Agent": "Millrace", "Webhook-Id": string(l.Task.ID) + "_1", "Traceparent": l.Task.Trace,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	wantBody := map[string]any{
		"id": string(l.Task.ID), "token": l.Token, "job": "/job", "attempt": 1.0, "payload": map[string]any{"n": 1.0},
		"created_at": "2026-01-02T03:04:05.000000Z", "callback": "https://millrace.example/api/v1/leases/" + l.Token,
	}
	if diff := cmp.Diff(wantBody, sent); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestHTTPThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // from then on the server sees that the client has gone
		<-r.Context().Done()
	})
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "short")
	})
	for name, test := range map[string]struct {
		url, want string
	}{
		"refused":     {"http://" + closed.Addr().String(), "connection refused"},
		"silent":      {silent, "it took longer than the 200ms allowed"},
		"broken":      {broken, "reading the response: unexpected EOF"},
		"no address":  {"http://%", "the target's address is not valid"},
		"not by HTTP": {"ftp://example.com", "unsupported protocol scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, l := newEngine(), fresh()
			post(t, e, newHTTP(t, true), test.url, 200*time.Millisecond, l)
			got := e.results[l.Token][0]
			if got.Outcome != queue.Failed {
				t.Errorf("outcome %q, want %q", got.Outcome, queue.Failed)
			}
			contains(t, "the message", got.Message, test.want)
		})
	}
}

// TestHTTPRefusesWhatIsNotPublic: in whichever way the address is written; names are judged by the address they resolve to.
func TestHTTPRefusesWhatIsNotPublic(t *testing.T) {
	t.Parallel()
	calls := 0
	url := serve(t, func(http.ResponseWriter, *http.Request) { calls++ })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"[fe80::1]", "[fd00:ec2::254]", "224.0.0.1", "[ff02::1]", "255.255.255.255", "100.100.100.200", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fec0::1]",
	}
	target := newHTTP(t, false)
	for _, host := range hosts {
		e, l := newEngine(), fresh()
		post(t, e, target, "http://"+host+":"+port, time.Minute, l)
		if got := e.results[l.Token][0]; got.Outcome != queue.Failed || !strings.Contains(got.Message, "is not public") {
			t.Errorf("%s: %s, %q, want it to be refused", host, got.Outcome, got.Message)
		}
	}
	if calls != 0 {
		t.Errorf("%d requests arrived", calls)
	}
}

func TestHTTPSecrets(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "whsec_", "whsec_%%%", strings.TrimPrefix(secret, "whsec_"), "whsec_c2hvcnQ="} {
		if _, err := worker.NewHTTP(worker.HTTPOptions{Secret: bad}); err == nil {
			t.Errorf("the secret %q was taken", bad)
		}
	}
}

// TestHTTPSecretChanges: what is sent after the secret has changed is signed by the new one; what is no secret changes nothing.
func TestHTTPSecretChanges(t *testing.T) {
	t.Parallel()
	current := ""
	target, err := worker.NewHTTP(worker.HTTPOptions{Secret: secret, Current: func() string { return current }, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another one of at least 24 bytes"))
	for _, c := range []struct{ current, by string }{{"", secret}, {secret, secret}, {other, other}, {"whsec_", other}, {"", other}} {
		current = c.current
		verifier, err := standardwebhooks.NewWebhook(c.by)
		if err != nil {
			t.Fatal(err)
		}
		var verified error
		url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			verified = verifier.Verify(body, r.Header)
		})
		post(t, newEngine(), target, url, time.Minute, fresh())
		if verified != nil {
			t.Errorf("with %q: %v", c.current, verified)
		}
	}
}

// FuzzHTTPResponse: whatever the response, the attempt has one result, which the engine accepts.
func FuzzHTTPResponse(f *testing.F) {
	for _, seed := range []struct {
		status      int
		after, body string
	}{
		{200, "", "{}"}, {202, "", ""}, {429, "120", ""}, {503, "Fri, 02 Jan 2026 03:04:05 GMT", "x"}, {429, "1e9", ""}, {302, "", "\xff"}, {429, "18446744073709551616", ""},
	} {
		f.Add(seed.status, seed.after, seed.body)
	}
	target, err := worker.NewHTTP(worker.HTTPOptions{Secret: secret, AllowPrivate: true})
	if err != nil {
		f.Fatal(err)
	}
	var answer atomic.Pointer[func(http.ResponseWriter)]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (*answer.Load())(w) }))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		if status < 200 || status > 999 {
			t.Skip()
		}
		respond := func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
		answer.Store(&respond)
		e, l := newEngine(), fresh()
		r := worker.NewRunner(worker.Options{
			Engine: e, Definitions: declared(definition.Target{HTTP: &definition.HTTPTarget{URL: server.URL}}, 5*time.Second), Targets: worker.Targets{HTTP: target},
		})
		r.Run(context.Background(), l)
		for _, got := range e.results[l.Token] {
			if strings.Contains(got.Message, "took longer") {
				t.Errorf("%d %q %q: %s", status, after, body, got.Message)
			}
			if got.RetryDelay < 0 || got.RetryDelay > 24*time.Hour || len(got.Output) > 0 && !json.Valid(got.Output) {
				t.Errorf("%d %q %q: %+v", status, after, body, got)
			}
		}
		if n := len(e.results[l.Token]); n > 1 || n == 0 && status != 202 { // or a 202 whose header cannot be read
			t.Errorf("%d: completed %d times", status, n)
		}
	})
}

// TestHTTPOutputThatIsNotKept: an output that is too large or too deep is not kept, and the attempt's log says so.
func TestHTTPOutputThatIsNotKept(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		strings.Repeat("[", 100) + strings.Repeat("]", 100):   "",
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000): "the response is nested 1000 levels deep: at most 100 are possible, and was not kept",
		`"` + strings.Repeat("x", 256<<10) + `"`:              "the response is longer than 256 KiB and was not kept",
	} {
		e, l := newEngine(), fresh()
		post(t, e, newHTTP(t, true), serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }), 0, l)
		got := e.results[l.Token][0]
		if got.Outcome != queue.OK || (got.Output == nil) != (want != "") {
			t.Errorf("%.10s…: %s with an output of %d bytes", body, got.Outcome, len(got.Output))
		}
		if said := strings.Join(e.messages(l.Token), "\n"); !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%.10s…: the log is %q, want %q", body, said, want)
		}
	}
}
