package host

import (
	"io"
	"net/http"
	"time"
)

// timeBodies gives each request's body a time by which it must have arrived. http.Server.ReadTimeout does not do: it goes
// on counting after the body was read and then cancels the request, which a long poll would not survive.
func timeBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil {
			r.Body = &timedBody{ReadCloser: r.Body, control: control}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline once the body has ended.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{}) // it could be set, so it can be lifted
	}
	return n, err
}
