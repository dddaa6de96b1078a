package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSnapshotAt runs snapshot as of an EventId: the server is asked for it, 0 too, and what is no EventId is a mistake of usage.
func TestSnapshotAt(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{"": "", "--at=0": "0", "--at=12": "12", "--at=x": "none"} {
		asked := "none"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Query().Get("at")
			io.WriteString(w, `{"objects":[],"eventId":12}`)
		}))
		args := []string{"snapshot", "/a/", "--url", server.URL, "--token", "x"}
		if at != "" {
			args = append(args, at)
		}
		var out, stderr bytes.Buffer
		status := run(t.Context(), args, console{strings.NewReader(""), &out, &stderr})
		server.Close()
		if wrong := want == "none"; asked != want || (status == statusUsage) != wrong || (status == statusOK) == wrong {
			t.Errorf("%q: status %d, asked for %q, want %q\n%s%s", at, status, asked, want, &out, &stderr)
		}
	}
}
