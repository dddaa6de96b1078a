package awsenv

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Client answers what sends the SDK's requests over a transport. Redirects are not followed.
//
// As soon as an answer's head is there, the SDK closes the request's body, and a closed body answers io.EOF as an error of
// its WriteTo. If net/http still looks whether the body has more than it said, it takes that for a failed request and cuts
// the connection, in the middle of a long answer (smithy-go 1.28, safeWriteToReadCloser). Bodies are sent without WriteTo.
func Client(transport http.RoundTripper) aws.HTTPClient {
	return &client{http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

type client struct{ http http.Client }

// Do sends a request.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.http.Do(r)
}
