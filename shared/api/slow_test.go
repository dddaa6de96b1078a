package api_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/access"
)

// pipes is a listener whose connections hold nothing, so that a client that does not read holds up the server at once.
type pipes struct {
	net.Listener
	conns chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p.conns; ok {
		return conn, nil
	}
	return nil, io.EOF
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

var eventLine = regexp.MustCompile(`(?m)^(?:id: |\{"eventId":)(\d+)`)

// A follower that takes nothing for half a minute is disconnected. Its stream is cut off without a proper end, and goes on where
// it was when the follower comes back.
func TestAFollowerThatDoesNotReadIsLetGoAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, form := range []string{sse, ndjson} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				const events = 500
				text := strings.Repeat("x", 1000)
				for n := range events {
					b.emit(t, fmt.Sprintf(`[{"TYPE":"A","key":"/%d","text":%q}]`, n, text))
				}
				p := pipes{conns: make(chan net.Conn, 1)}
				server := &http.Server{Handler: b.api}
				go func() { _ = server.Serve(p) }()
				near, far := net.Pipe()
				p.conns <- far
				r := request(t, access.Viewer, "GET", "http://server"+eventPath+"?after=0", "", "Accept", form)
				if err := r.Write(near); err != nil {
					t.Fatal(err)
				}
				answer, err := http.ReadResponse(bufio.NewReaderSize(near, 16), r)
				if err != nil || answer.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", answer, err)
				}
				taken := make([]byte, 100<<10)
				if _, err := io.ReadFull(answer.Body, taken); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				_ = near.SetReadDeadline(time.Now().Add(time.Hour))
				left, err := io.ReadAll(answer.Body)
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("after a minute without reading, %d bytes more and %v, want the stream broken off", len(left), err)
				}
				close(p.conns)
				_ = server.Close()
				resumed(t, b, append(taken, left...), form, events)
			})
		})
	}
}

// resumed checks that the events that were taken, and those after the last one that was taken as a whole, are all events.
func resumed(t *testing.T, b *bundle, taken []byte, form string, events int) {
	t.Helper()
	taken = taken[:bytes.LastIndexByte(taken, '\n')+1] // of the last event, perhaps only its id
	ids := eventLine.FindAllSubmatch(taken, -1)
	if form == sse {
		ids = eventLine.FindAllSubmatch(taken[:bytes.LastIndex(taken, []byte("\n\n"))+2], -1)
	}
	last := string(ids[len(ids)-1][1])
	rest := b.as(t, access.Viewer, "GET", eventPath+"?after=0&timeout=0", "", "Accept", form, "Last-Event-ID", last)
	if more := len(eventLine.FindAllString(rest.body, -1)); len(ids)+more != events || len(ids) == 0 || more == 0 {
		t.Errorf("%d events taken and %d after the last of them, want %d together", len(ids), more, events)
	}
}
