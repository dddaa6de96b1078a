package account_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace/millrace/tests/process"
)

// dashboard signs in, adds a job by the pages, sees it, and signs out.
func (s *stack) dashboard(t *testing.T) {
	if status, page := s.visit(t, "/login", ""); status != http.StatusOK || !strings.Contains(page, `name="token"`) {
		t.Fatalf("the page to sign in: %d %s", status, page)
	}
	signedIn := s.form(t, "/login", "", url.Values{"token": {s.token}})
	if signedIn.StatusCode != http.StatusSeeOther || len(signedIn.Cookies) != 1 || !strings.Contains(signedIn.Cookies[0], "; Secure") {
		t.Fatalf("signing in: %+v", signedIn)
	}
	cookie, _, _ := strings.Cut(signedIn.Cookies[0], ";")
	for _, path := range []string{"/", "/journal", "/chains/%2Fparcels", "/assets/style.css"} {
		if status, page := s.visit(t, path, cookie); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, page)
		}
	}
	added := s.form(t, "/act", cookie, url.Values{"do": {"job.add"}, "topic": {"elsewhere"}, "properties": {"{}"}})
	if status, page := s.visit(t, added.Headers["Location"], cookie); added.StatusCode != http.StatusSeeOther || status != http.StatusOK || !strings.Contains(page, "QUEUED") {
		t.Errorf("adding a job: %+v, and its page: %d %s", added, status, page)
	}
	s.form(t, "/logout", cookie, url.Values{})
	if status, _ := s.visit(t, "/", cookie); status != http.StatusSeeOther {
		t.Errorf("after signing out: %d, want to be led to sign in", status)
	}
}

// visit fetches a page through the gateway.
func (s *stack) visit(t *testing.T, path, cookie string) (status int, page string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.account.endpoint.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = s.host
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Cookie", cookie)
	client := http.Client{Transport: process.Client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// form sends a form as the gateway does: the emulated one takes forms for requests to AWS.
func (s *stack) form(t *testing.T, path, cookie string, form url.Values) (out events.APIGatewayV2HTTPResponse) {
	t.Helper()
	in := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "ANY " + path, RawPath: path, Cookies: []string{cookie}, Body: form.Encode(),
		Headers: map[string]string{"host": s.host, "accept": "text/html", "content-type": "application/x-www-form-urlencoded", "x-forwarded-proto": "https"},
	}
	in.RequestContext.HTTP.Method = http.MethodPost
	payload, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if answer := s.invoke(t, "DashboardFunction", string(payload)); json.Unmarshal([]byte(answer), &out) != nil {
		t.Fatalf("POST %s: %s", path, answer)
	}
	return out
}
