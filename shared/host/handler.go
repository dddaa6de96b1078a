package host

import (
	"errors"
	"net/http"
)

var errUnguarded = errors.New("host: a function with a tick or messages needs a Guard on a plain host")

// NewHandler returns what a plain host serves for the function: its HTTP handler, and CloudEvents sent with POST to "/",
// where Knative, Eventarc and the like deliver them. It returns an error for a function with a tick or messages but no
// Guard.
func NewHandler(f Function) (http.Handler, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Tick == nil && f.Messages == nil {
		return f.HTTP, nil
	}
	if f.Guard == nil {
		return nil, errUnguarded
	}
	mux := http.NewServeMux()
	mux.Handle("POST /{$}", f.Guard(http.HandlerFunc(f.receive)))
	if f.HTTP != nil {
		mux.Handle("/", f.HTTP)
	}
	return mux, nil
}
