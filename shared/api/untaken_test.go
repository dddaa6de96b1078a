package api_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

// A client that writes its whole body before it reads gets the response of what does not take it, such as a refusal, and then the proper
// end of the connection. The body is more than the connection holds unread.
func TestAResponseIsThereAfterABodyThatIsNotTaken(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("x"), 12<<20)
	for name, c := range map[string]struct {
		request, kind string
		token         access.Role
		chunked       bool
		connection    string
		status        int
	}{
		"too large":             {"POST " + eventPath, "application/json", access.Admin, false, "keep-alive", 413},
		"too large, the last":   {"POST " + eventPath, "application/json", access.Admin, false, "close", 413},
		"too large, in chunks":  {"POST " + eventPath, "application/json", access.Admin, true, "close", 413},
		"no token":              {"POST " + eventPath, "application/json", "", false, "keep-alive", 401},
		"no token, the last":    {"POST " + eventPath, "application/json", "", false, "close", 401},
		"a role that may not":   {"POST " + eventPath, "application/json", access.Viewer, false, "close", 403},
		"no such path":          {"PUT /api/v1/nothing", "application/json", access.Admin, false, "close", 404},
		"no such method":        {"PUT " + eventPath, "application/json", access.Admin, false, "close", 405},
		"no JSON":               {"POST " + eventPath, "text/plain", access.Admin, true, "close", 415},
		"lines without a token": {"POST " + eventPath, "application/x-ndjson", "", true, "keep-alive", 401},
		"no use for a body":     {"GET /healthz", "application/json", "", false, "close", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(setup(t).api)
			defer server.Close()
			conn := dial(t, server, 20*time.Second)
			head := fmt.Sprintf("%s HTTP/1.1\r\nHost: h\r\nConnection: %s\r\nContent-Type: %s\r\n", c.request, c.connection, c.kind)
			if c.token != "" {
				head += "Authorization: Bearer " + secret(c.token) + "\r\n"
			}
			length, end := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), ""
			if c.chunked {
				length, end = fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body)), "\r\n0\r\n\r\n"
			}
			for _, part := range [][]byte{[]byte(head + length), body, []byte(end)} {
				if _, err := conn.Write(part); err != nil {
					t.Fatal(err)
				}
			}
			in := bufio.NewReader(conn)
			got, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			if text, err := io.ReadAll(got.Body); err != nil || got.StatusCode != c.status {
				t.Errorf("%d %q, %v, want %d", got.StatusCode, text, err, c.status)
			}
			if more, err := io.ReadAll(in); len(more) > 0 || err != nil {
				t.Errorf("then %q, %v, want the end", more, err)
			}
		})
	}
}

// A small body that was not taken keeps nothing from the next request of its connection.
func TestTheNextRequestAfterABodyThatIsNotTaken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(setup(t).api)
	defer server.Close()
	conn := dial(t, server, 20*time.Second)
	_, _ = fmt.Fprintf(conn, "POST %[1]s HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"+
		"POST %[1]s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", eventPath)
	in := bufio.NewReader(conn)
	for i, want := range []int{401, 401, 200} {
		got, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("response %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, got.Body); err != nil || got.StatusCode != want {
			t.Errorf("response %d: %d, %v, want %d", i, got.StatusCode, err, want)
		}
		_ = got.Body.Close()
	}
}

// What waits for the rest of a body that is not taken is over as the server stops.
func TestAStopDoesNotWaitForABodyThatIsNotTaken(t *testing.T) {
	t.Parallel()
	stopping, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(setup(t, func(o *api.Options) { o.Stopping = stopping }).api)
	defer server.Close()
	conn := dial(t, server, 4*time.Second) // less than the rest is waited for otherwise
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n", eventPath)
	in := bufio.NewReader(conn)
	got, err := http.ReadResponse(in, nil)
	if err != nil || got.StatusCode != 401 {
		t.Fatalf("%+v, %v, want 401", got, err)
	}
	defer got.Body.Close()
	stop()
	if _, err := io.ReadAll(in); err != nil {
		t.Errorf("%v, want the end of the connection", err)
	}
}

// dial returns a connection to a server, on which nothing takes longer than patience: without that, a failure is a test that hangs.
func dial(t *testing.T, server *httptest.Server, patience time.Duration) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}
