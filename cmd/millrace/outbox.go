package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	pgstore "github.com/millrace/millrace/shared/store/postgres"
)

// outboxPaths are the operations that take the entries of the database's outbox.
var outboxPaths = map[string]string{"job": "/api/v1/jobs", "event": "/jobscheduler/master/api/event"}

// deliver makes the job or the events that an entry of the outbox asks for. Its key makes sure that this happens once.
func (n *node) deliver(ctx context.Context, e pgstore.Entry) error {
	ctx = api.As(ctx, &access.Token{Name: "outbox", Role: access.Producer})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, outboxPaths[e.Call], strings.NewReader(string(e.Body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", e.Key)
	response := &reply{header: http.Header{}, status: http.StatusOK}
	n.handler.ServeHTTP(response, request)
	status := response.status
	if status < http.StatusBadRequest {
		return nil
	}
	var problem struct{ Title, Detail string }
	_ = json.Unmarshal(response.body.Bytes(), &problem)
	reason := fmt.Sprintf("%d: %s", status, cmp.Or(problem.Detail, problem.Title))
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return fmt.Errorf("the outbox: %s", reason)
	}
	return &pgstore.Refused{Reason: reason}
}

// reply is a response within the process.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header.
func (k *reply) Header() http.Header { return k.header }

// WriteHeader keeps the status.
func (k *reply) WriteHeader(status int) { k.status = status }

// Write keeps a part of the body.
func (k *reply) Write(p []byte) (int, error) { return k.body.Write(p) }
