package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// passed is a response that is read while it is made.
type passed struct {
	header http.Header
	status int
	*io.PipeWriter
}

// Header returns the response's header.
func (p *passed) Header() http.Header { return p.header }

// WriteHeader notes the first status.
func (p *passed) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

// first makes a GET whose response has one long list as its first member, calls each for the list's values until each returns false, and
// leaves then: what would come after is not even made. whole reports whether the list came to its end. The error is a *refusal where the
// API refused.
func (d *Dashboard) first(ctx context.Context, target string, each func(jsontext.Value) bool) (whole bool, err error) {
	ctx, leave := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		leave()
		return false, fmt.Errorf("web: GET %s: %w", target, err)
	}
	from, to := io.Pipe()
	response, done := &passed{header: http.Header{}, PipeWriter: to}, make(chan struct{})
	go func() {
		defer close(done)
		defer to.Close()
		defer func() { // the API breaks off a response that it cannot end
			if reason := recover(); reason != nil && reason != any(http.ErrAbortHandler) {
				panic(reason)
			}
		}()
		d.api.ServeHTTP(response, r)
	}()
	defer func() { leave(); from.Close(); <-done }()
	decoder := jsontext.NewDecoder(from)
	if decoder.PeekKind() == '{' && response.status >= http.StatusBadRequest {
		refused := &refusal{Status: response.status}
		return false, errors.Join(json.UnmarshalDecode(decoder, refused), refused)
	}
	for range 3 { // {"orders":[
		if _, err := decoder.ReadToken(); err != nil {
			return false, fmt.Errorf("web: GET %s: %w", target, err)
		}
	}
	for decoder.PeekKind() != ']' {
		value, err := decoder.ReadValue()
		if err != nil || !each(value) {
			return false, err
		}
	}
	return true, nil
}
