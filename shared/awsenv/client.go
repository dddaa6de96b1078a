package awsenv

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Client returns an HTTP client for the SDK over a transport. It does not follow redirects.
//
// The SDK closes a request's body as soon as the head of the response arrives, and the WriteTo of a closed body returns
// io.EOF as an error. If net/http is still checking that the body has no more bytes than declared, it takes that for a
// failed request and closes the connection, in the middle of a long response (smithy-go 1.28, safeWriteToReadCloser). So
// the client hides the bodies' WriteTo.
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
