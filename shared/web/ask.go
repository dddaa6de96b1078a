package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/api"
)

// refusal is what the API has refused, in its words, or the dashboard.
type refusal struct {
	Status int      `json:"status"`
	Code   api.Code `json:"code"`
	Detail string   `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

// refuse returns a refusal of the dashboard's own.
func refuse(code api.Code, detail string) *refusal {
	return &refusal{Status: code.Status(), Code: code, Detail: detail}
}

// Error returns the explanation.
func (r *refusal) Error() string { return r.Detail }

// kept is a response that is kept in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the response's header.
func (a *kept) Header() http.Header { return a.header }

// WriteHeader notes the first status.
func (a *kept) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write adds to the body.
func (a *kept) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// ask makes a request to the API on behalf of the session that ctx has, and decodes the response into out unless that is nil. body is
// JSON; empty: none. The error is a *refusal where the API refused.
func (d *Dashboard) ask(ctx context.Context, method, target, body string, out any) error {
	_, err := d.request(ctx, method, target, body, out)
	return err
}

// request is ask that returns the response's header too, also of a refusal.
func (d *Dashboard) request(ctx context.Context, method, target, body string, out any) (http.Header, error) {
	return d.send(ctx, act.Request{Method: method, Target: target, Body: body}, out)
}

// send is request with all that acts have.
func (d *Dashboard) send(ctx context.Context, request act.Request, out any) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, request.Target, strings.NewReader(request.Body))
	if err != nil {
		return nil, fmt.Errorf("web: %s %s: %w", request.Method, request.Target, err)
	}
	if request.Body != "" {
		r.Header.Set("Content-Type", request.ContentType())
	}
	if request.Header != "" {
		r.Header.Set(request.Header, request.Value)
	}
	a := &kept{header: http.Header{}}
	d.api.ServeHTTP(a, r)
	if a.status >= http.StatusBadRequest {
		refused := &refusal{Status: a.status}
		return a.header, errors.Join(json.Unmarshal(a.body.Bytes(), refused), refused)
	}
	if out == nil {
		return a.header, nil
	}
	decoder := json.NewDecoder(&a.body)
	decoder.UseNumber() // ids have more digits than are shown of a float
	return a.header, decoder.Decode(out)
}
