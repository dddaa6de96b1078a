package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
)

// What is left of a body of lines that was not read to its end is never taken for the next request of the connection.
func TestWhatIsLeftOfLinesIsNoRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, end string }{
		"a line that is too long":        {eventPath, fmt.Sprintf("%x\r\n%s", 4<<20, strings.Repeat("x", 2<<20)), "\r\n0\r\n\r\n"},
		"no operation with lines":        {"/api/v1/jobs", "1000\r\n{", "}"},
		"no operation, a body that ends": {"/api/v1/jobs", "2\r\n{}\r\n0\r\n\r\n", "}"},
		"no chunk":                       {eventPath, "no length\r\n", "0\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged bytes.Buffer
			server := httptest.NewUnstartedServer(setup(t).api)
			server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&logged, nil), slog.LevelWarn)
			server.Start()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // without it, a failure is a test that hangs
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n%s",
				c.path, secret(access.Admin), c.body)
			var got []byte
			for part := make([]byte, 4096); !bytes.HasSuffix(got, []byte(c.end)); {
				n, err := conn.Read(part)
				if got = append(got, part[:n]...); err != nil {
					t.Fatalf("%v after %q", err, got)
				}
			}
			_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
			if more, err := io.ReadAll(conn); len(more) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a second response, or an open connection: %q, %v", more, err)
			}
			server.Close() // waits for the handler
			if logged.Len() > 0 {
				t.Errorf("log: %s", logged.String())
			}
		})
	}
}
