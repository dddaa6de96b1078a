package process

import "net/http"

// Client is what tests call servers by. [http.DefaultClient] does not do where tests run side by side: every server of
// [net/http/httptest] closes the default transport's idle connections when it ends, and a request which has just taken one fails.
var Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
