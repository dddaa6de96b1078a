package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/store"
)

// TestAwaitNode: while the disk has no free space, the store is tried again with growing pauses, and a line is logged for each.
func TestAwaitNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, began, tries := slog.New(slog.NewTextHandler(&out, nil)), time.Now(), 0
		open := func() (*node, error) {
			if tries++; tries < 6 {
				return nil, fmt.Errorf("open: %w", store.ErrNoRoom)
			}
			return &node{}, nil
		}
		if n, err := awaitNode(t.Context(), open, log); n == nil || err != nil {
			t.Errorf("awaitNode = %v, %v, want a node", n, err)
		}
		if took := time.Since(began); took != (1+2+4+5+5)*time.Second || strings.Count(out.String(), "\n") != 5 {
			t.Errorf("after %v, %d tries: %s, want a line for each of 17s", took, tries, &out)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		tries = 0
		if _, err := awaitNode(ctx, open, log); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("awaitNode = %v when it is to stop, want that", err)
		}
		locked := func() (*node, error) { return nil, store.ErrLocked }
		if _, err := awaitNode(t.Context(), locked, log); !errors.Is(err, store.ErrLocked) {
			t.Errorf("awaitNode = %v, want what does not pass by itself at once", err)
		}
	})
}

// TestDoor: before there is a node, the server is alive and responds 503 to the rest; paths that need a token still need it.
func TestDoor(t *testing.T) {
	t.Parallel()
	d := newDoor(config.Settings{Tokens: []access.Token{access.NewToken("admin", access.Admin, "s")}}, slog.New(slog.DiscardHandler))
	for target, want := range map[string]int{
		"/healthz": 200, "/readyz": 503, "/metrics": 503, "/openapi.json": 503, "/": 503, "/api/v1/jobs": 401, "/tasks": 401,
		"/jobscheduler/master/api/event?token=wrong": 401, "/jobscheduler/master/api/event?token=s": 503, "/api/v1/jobs?token=s": 503,
	} {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != want || want == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("GET %s = %d, Retry-After %q, want %d", target, w.Code, w.Header().Get("Retry-After"), want)
		}
	}
	drained := 0
	n := &node{handler: http.NotFoundHandler()}
	d.inside, d.drain = n.handler, func() { drained++ }
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	d.close()
	if w.Code != 404 || drained != 1 {
		t.Errorf("%d from the node, drained %d times", w.Code, drained)
	}
}
