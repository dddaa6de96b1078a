package awsenv_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/millrace/millrace/shared/awsenv"
)

// body implements io.WriterTo, as the bodies of the SDK do.
type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

func TestClientHidesWriteTo(t *testing.T) {
	t.Parallel()
	client := awsenv.Client(transport(func(r *http.Request) (*http.Response, error) {
		if _, ok := r.Body.(io.WriterTo); ok {
			t.Error("the transport is given a body with WriteTo")
		}
		sent, err := io.ReadAll(r.Body)
		if string(sent) != "sent" || err != nil {
			t.Errorf("the transport is given %q, %v, want what was sent", sent, err)
		}
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"/elsewhere"}}, Body: http.NoBody}, nil
	}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", body{bytes.NewReader([]byte("sent"))})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil || response.StatusCode != http.StatusFound {
		t.Fatalf("answer %v, %v, want the redirect itself", response, err)
	}
	_ = response.Body.Close()
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
