package host_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

// seen is what a handler finds in its request.
type seen struct {
	Method, Path, Escaped, Query, Host, Remote, Cookie, Body string
	Length                                                   int64
	Header                                                   http.Header
}

func see(t *testing.T, in events.APIGatewayV2HTTPRequest) seen {
	t.Helper()
	var got seen
	call(t, func(_ http.ResponseWriter, r *http.Request) {
		got = seen{
			Method: r.Method, Path: r.URL.Path, Escaped: r.URL.EscapedPath(), Query: r.URL.RawQuery, Host: r.Host,
			Remote: r.RemoteAddr, Cookie: r.Header.Get("Cookie"), Body: body(t, r.Body), Length: r.ContentLength, Header: r.Header,
		}
	}, in)
	return got
}

func TestRequestIsWhatWasSent(t *testing.T) {
	t.Parallel()
	var in events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal([]byte(`{
		"rawPath": "/a/b", "rawQueryString": "return=Event&after=0&x=a%2Cb",
		"cookies": ["one=1", "two=2"],
		"headers": {"host": "abc.execute-api.eu-central-1.amazonaws.com", "authorization": "Bearer t", "accept": "a/b,c/d", "x-forwarded-for": "203.0.113.9, 192.0.2.1"},
		"requestContext": {"requestId": "JKJaXmPLvHcESHA=", "stage": "$default", "domainName": "abc.example",
			"http": {"method": "POST", "sourceIp": "192.0.2.1"}},
		"body": "eyJhIjoxfQ==", "isBase64Encoded": true}`), &in); err != nil {
		t.Fatal(err)
	}
	want := seen{
		Method: "POST", Path: "/a/b", Escaped: "/a/b", Query: "return=Event&after=0&x=a%2Cb",
		Host: "abc.execute-api.eu-central-1.amazonaws.com", Remote: "192.0.2.1:0", Cookie: "one=1; two=2", Body: `{"a":1}`, Length: 7,
		Header: http.Header{
			"Authorization": {"Bearer t"}, "Accept": {"a/b,c/d"}, "Cookie": {"one=1; two=2"}, "X-Forwarded-For": {"203.0.113.9, 192.0.2.1"}, "X-Request-Id": {"JKJaXmPLvHcESHA="},
		},
	}
	if diff := cmp.Diff(want, see(t, in)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestRequestPath(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, stage, path, escaped string }{
		{"plain", "/a/b", "$default", "/a/b", "/a/b"},
		{"slash inside a name", "/orders/%2Fchain%2Fa/1", "$default", "/orders//chain/a/1", "/orders/%2Fchain%2Fa/1"},
		{"space, as sent", "/a%20b", "$default", "/a b", "/a%20b"},
		{"space, as some gateways unescape it", "/a b", "$default", "/a b", "/a%20b"},
		{"percent sign alone", "/100%", "$default", "/100%", "/100%25"},
		{"unicode", "/%C3%BC/ü", "$default", "/ü/ü", "/%C3%BC/%C3%BC"},
		{"trailing slash", "/a/", "$default", "/a/", "/a/"},
		{"stage of that name", "/prod/a", "prod", "/a", "/a"},
		{"stage alone", "/prod", "prod", "/", "/"},
		{"empty", "", "$default", "/", "/"},
		{"two slashes are no host", "//evil.example/a", "$default", "//evil.example/a", "//evil.example/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := events.APIGatewayV2HTTPRequest{RawPath: tt.raw}
			in.RequestContext.Stage = tt.stage
			got := see(t, in)
			if got.Path != tt.path || got.Escaped != tt.escaped || got.Host != "" {
				t.Errorf("path %q, escaped %q, host %q, want %q and %q", got.Path, got.Escaped, got.Host, tt.path, tt.escaped)
			}
		})
	}
}

func TestRequestThatCannotBeMade(t *testing.T) {
	t.Parallel()
	unreached := func(http.ResponseWriter, *http.Request) { t.Error("the handler was reached") }
	badBody := events.APIGatewayV2HTTPRequest{Body: "%%%", IsBase64Encoded: true}
	badMethod := events.APIGatewayV2HTTPRequest{}
	badMethod.RequestContext.HTTP.Method = "G E T"
	for name, in := range map[string]events.APIGatewayV2HTTPRequest{"body": badBody, "method": badMethod} {
		out := call(t, unreached, in)
		if out.StatusCode != http.StatusBadRequest || !strings.Contains(out.Body, `"code":"invalid"`) {
			t.Errorf("bad %s: answer %+v, want a 400 of code invalid", name, out)
		}
	}
}

func TestResponse(t *testing.T) {
	t.Parallel()
	type response = events.APIGatewayV2HTTPResponse
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    response
	}{
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, response{StatusCode: 200}},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, response{StatusCode: 204}},
		{"JSON as text", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(201)
			_, _ = w.Write([]byte(`{"ü":1}`))
		}, response{StatusCode: 201, Headers: map[string]string{"Content-Type": "application/json"}, Body: `{"ü":1}`}},
		{"other types in Base64", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0xff})
		}, response{StatusCode: 200, Headers: map[string]string{"Content-Type": "image/png"}, Body: "/w==", IsBase64Encoded: true}},
		{"text that is not UTF-8 in Base64", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte{0xff})
		}, response{StatusCode: 200, Headers: map[string]string{"Content-Type": "text/plain"}, Body: "/w==", IsBase64Encoded: true}},
		{"several values joined, cookies apart", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Link"] = []string{"<a>", "<b>"}
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		}, response{StatusCode: 200, Headers: map[string]string{"Link": "<a>, <b>"}, Cookies: []string{"a=1", "b=2"}}},
		{"the first status counts, and headers as they were then", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(404)
			w.Header().Set("Late", "1")
			w.WriteHeader(200)
		}, response{StatusCode: 404}},
		{"panic", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Half", "done")
			_, _ = w.Write([]byte("half"))
			panic("boom")
		}, response{
			StatusCode: 500, Headers: map[string]string{"Content-Type": "application/problem+json"},
			Body: `{"code":"internal","detail":"the request failed unexpectedly","message":"the request failed unexpectedly",` +
				`"status":500,"title":"Internal Server Error","type":"about:blank"}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.want.Headers == nil {
				tt.want.Headers = map[string]string{}
			}
			if diff := cmp.Diff(tt.want, call(t, tt.handler, events.APIGatewayV2HTTPRequest{})); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponseThatIsLarge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		size    int
		status  int
		encoded bool
	}{
		{"as text up to 1 MiB", 1 << 20, 200, false},
		{"in Base64 beyond", 1<<20 + 1, 200, true},
		{"as much as answers of events have", 4<<20 + 256<<10, 200, true},
		{"more than Lambda carries", 5 << 20, 422, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := call(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(bytes.Repeat([]byte{'"'}, tt.size))
			}, events.APIGatewayV2HTTPRequest{})
			if out.StatusCode != tt.status || out.IsBase64Encoded != tt.encoded {
				t.Errorf("status %d, Base64 %v, want %d and %v", out.StatusCode, out.IsBase64Encoded, tt.status, tt.encoded)
			}
		})
	}
}
