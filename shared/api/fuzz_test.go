package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

// Whatever is sent, the response is no failure of the server, and every refusal is a complete problem.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "event", "return=Event&after=0&limit=3", "", "application/json")
	f.Add("GET", "order/aFolder/|/b", "return=OrderOverview", "", "text/event-stream;q=0.5, */*")
	f.Add("GET", "object/%2Fa%2F*", "return=A,B&after=5&timeout=1", "", "application/x-ndjson")
	f.Add("POST", "order", "return=Event&after=0", `{"paths":["/a/","/b"]}`, "application/cloudevents-batch+json")
	f.Add("POST", "event", "", `[{"TYPE":"A","key":"/a","n":[1,{"m":null}]}]`, "")
	f.Fuzz(func(t *testing.T, method, path, query, body, accept string) {
		u, err := url.ParseRequestURI(base + "/" + path)
		if err != nil || method != "GET" && method != "POST" {
			t.Skip()
		}
		b := setup(t, func(o *api.Options) { o.MaxWait = 1 })
		b.emit(t, three)
		u.RawQuery = query
		r := &http.Request{Method: method, URL: u, Header: http.Header{}, Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}
		r = r.WithContext(t.Context())
		if method == "POST" {
			r.Body = httptest.NewRequest(method, "/", strings.NewReader(body)).Body
			r.ContentLength = int64(len(body))
		}
		r.Header.Set("Authorization", "Bearer "+secret(access.Admin))
		r.Header.Set("Accept", accept)
		if strings.Contains(accept, "event-stream") || strings.Contains(accept, "ndjson") || strings.Contains(accept, "*") {
			r.URL.RawQuery += "&timeout=0" // an endless stream is no failure; twice a timeout is
		}
		got := b.do(t, r)
		if got.StatusCode >= 500 {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
		if got.StatusCode >= 400 {
			problemIn(t, got)
		}
	})
}
