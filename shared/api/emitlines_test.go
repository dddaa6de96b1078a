package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// lineResult is a line of a response.
type lineResult struct {
	EventIDs []event.ID `json:"eventIds"`
	api.Problem
}

func results(t *testing.T, body string) (all []lineResult) {
	t.Helper()
	for line := range strings.Lines(body) {
		var r lineResult
		if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

func (b *bundle) emitLines(t *testing.T, body string, headers ...string) reply {
	t.Helper()
	return b.as(t, access.Producer, "POST", eventPath, body, append([]string{"Content-Type", "application/x-ndjson"}, headers...)...)
}

// Where the host cannot stream, the body is answered as a whole; each line is judged by itself.
func TestEmitLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := []struct{ line, at string }{
		{`{"TYPE":"A","key":"/a"}`, ""}, {`[{"TYPE":"B"},{"TYPE":"C"}]`, ""}, {` {"idempotencyKey":"k","events":[{"TYPE":"D"}]}` + "\r", ""},
		{`{"TYPE":"E","events":[1],"idempotencyKey":2}`, ""},
		{`{`, "body"}, {`1`, "body"}, {`[]`, "body"}, {`{"TYPE":1}`, "body.TYPE"}, {`[{"TYPE":"A"},{"key":"a"}]`, "body[1].TYPE"},
		{`{"TYPE":"OrderAdded"}`, "body.TYPE"}, {`{"TYPE":"A"},{"TYPE":"B"}`, "body"}, {`{"TYPE":"A","x":1,"x":2}`, "body.x"},
		{`{"idempotencyKey":"","events":[{"TYPE":"D"}]}`, "body.idempotencyKey"}, {`{"idempotencyKey":"k"}`, "body.events"},
		{`{"events":[{"TYPE":"D"}]}`, "body.idempotencyKey"}, {`{"idempotencyKey":"q","events":[{"TYPE":"D"},{}]}`, "body.events[1].TYPE"},
		{`{"idempotencyKey":"q","events":[{"TYPE":"D"}],"more":1}`, "body.more"},
		{`{"TYPE":"Z"}`, ""},
	}
	var body []string
	for _, l := range lines {
		body = append(body, l.line, "", " \t")
	}
	got := b.emitLines(t, strings.Join(body[:len(body)-2], "\n")) // the last line has no end
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %s %s", got.StatusCode, got.Header, got.body)
	}
	all := results(t, got.body)
	if len(all) != len(lines) {
		t.Fatalf("%d results, want %d:\n%s", len(all), len(lines), got.body)
	}
	ids := map[event.ID]bool{}
	for i, l := range lines {
		r := all[i]
		if l.at == "" {
			if r.Code != "" || len(r.EventIDs) == 0 {
				t.Errorf("%s: %+v", l.line, r)
			}
		} else if len(r.Errors) == 0 || r.Errors[0].Location != l.at || r.RequestID == "" || r.Status/100 != 4 || r.EventIDs != nil {
			t.Errorf("%s: %+v, want a problem at %s", l.line, r, l.at)
		}
		for _, id := range r.EventIDs {
			ids[id] = true
		}
	}
	if len(ids) != 6 || len(b.journal.events) != 6 || len(all[1].EventIDs) != 2 {
		t.Errorf("%d ids and %d events, want 6", len(ids), len(b.journal.events))
	}
	for i, e := range b.journal.events {
		if !ids[e.ID] {
			t.Errorf("event %d is in no result", i)
		}
	}
}

func TestEmitLinesRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wantProblem(t, b.emitLines(t, `{"TYPE":"A"}`, "Idempotency-Key", "k"), 400, api.CodeInvalid, "header.Idempotency-Key")
	wantProblem(t, b.emitLines(t, `{"TYPE":"A"}`, "Content-Encoding", "gzip"), 415, api.CodeMediaType, "header.Content-Encoding")
	wantProblem(t, b.as(t, access.Viewer, "POST", eventPath, `{"TYPE":"A"}`, "Content-Type", "application/x-ndjson"), 403, api.CodeForbidden)
	if got := b.emitLines(t, "\n \n"); got.StatusCode != 200 || got.body != "" {
		t.Errorf("without a line: %d %q", got.StatusCode, got.body)
	}
}

// A key means the same in a line and in the header.
func TestEmitLinesOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	line := `{"idempotencyKey":"k","events":[{"TYPE":"A"}]}` + "\n"
	first := b.emitLines(t, line).body
	if again := b.emitLines(t, line).body; again != first {
		t.Errorf("again = %s, want %s", again, first)
	}
	got := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"}]`, "Idempotency-Key", "k")
	if got.StatusCode != 201 || got.body+"\n" != first || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("by the header = %d %s", got.StatusCode, got.body)
	}
	other := results(t, b.emitLines(t, `{"idempotencyKey":"k","events":[{"TYPE":"B"}]}`).body)
	if other[0].Code != api.CodeMismatch || other[0].Errors[0].Location != "body.idempotencyKey" || len(b.journal.events) != 1 {
		t.Errorf("other events = %+v, with %d events", other, len(b.journal.events))
	}
}

func TestEmitLinesLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	small := `{"TYPE":"A"}` + "\n"
	large := `[{"TYPE":"L","x":"` + strings.Repeat("x", 200<<10) + `"}` + strings.Repeat(`,{"TYPE":"L","x":"`+strings.Repeat("x", 200<<10)+`"}`, 4) + "]\n"
	all := results(t, b.emitLines(t, strings.Repeat(small, 3000)+large+large+small).body)
	if len(all) != 3003 || len(b.journal.events) != 3011 {
		t.Fatalf("%d results and %d events", len(all), len(b.journal.events))
	}
	for i, r := range all {
		if r.Code != "" || r.EventIDs[0] != firstID+event.ID(i)+event.ID(max(0, min(i-3000, 2))*4) {
			t.Fatalf("line %d = %+v: lines without keys keep their order", i, r)
		}
	}
	over := results(t, b.emitLines(t, small+`"`+strings.Repeat("x", 1<<20)+`"`+"\n"+small).body)
	if len(over) != 2 || over[0].Code != "" || over[1].Code != api.CodeTooLarge {
		t.Errorf("over the limit = %+v", over)
	}
	if b.journal.emits > 300 {
		t.Errorf("%d appends for 3,005 lines, want them to share appends", b.journal.emits)
	}
}

func TestEmitLinesFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.journal.fail = journal.ErrUnavailable
	all := results(t, b.emitLines(t, `{"TYPE":"A"}`+"\n"+`{"idempotencyKey":"k","events":[{"TYPE":"A"}]}`+"\n"+`{`).body)
	if len(all) != 3 || all[0].Code != api.CodeUnavailable || all[1].Code != api.CodeUnavailable || all[2].Code != api.CodeInvalid {
		t.Errorf("%+v", all)
	}
}

// liveLines begins a request of lines over a connection. Send sends lines, and read returns the next line of the response.
func liveLines(t *testing.T, h http.Handler) (send *io.PipeWriter, read func() (lineResult, error), server *httptest.Server) {
	t.Helper()
	send, in, server := openLines(t, h, access.Producer, eventPath)
	return send, func() (r lineResult, err error) {
		line, err := in.ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(line), &r)
		}
		return r, err
	}, server
}

func TestEmitLinesAsTheyCome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	send, read, _ := liveLines(t, b.api)
	for i := range 100 {
		_, _ = fmt.Fprintf(send, `{"TYPE":"A","n":%d}`+"\n", i)
		if got, err := read(); err != nil || len(got.EventIDs) != 1 || got.EventIDs[0] != firstID+event.ID(i) {
			t.Fatalf("line %d = %+v, %v", i, got, err)
		}
	}
	go func() {
		for range 5000 {
			_, _ = io.WriteString(send, `{"TYPE":"B"}`+"\n")
		}
		_, _ = io.WriteString(send, `{"TYPE":"C"}`)
		_ = send.Close()
	}()
	for i := range 5001 {
		if got, err := read(); err != nil || got.EventIDs[0] != firstID+event.ID(100+i) {
			t.Fatalf("line %d = %+v, %v", 100+i, got, err)
		}
	}
	if _, err := read(); !errors.Is(err, io.EOF) {
		t.Errorf("the end = %v", err)
	}
}

// A refusal does not wait for the end of the body, nor does the end of the response after a line that is too long.
func TestEmitLinesRefusedWhileTheyCome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := httptest.NewServer(b.api)
	t.Cleanup(server.Close)
	body, send := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+eventPath, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	got, err := server.Client().Do(r)
	if err != nil || got.StatusCode != 401 {
		t.Fatalf("%v, %v", got, err)
	}
	_ = got.Body.Close()
	_ = send.Close()

	send, read, _ := liveLines(t, b.api)
	go func() { _, _ = io.WriteString(send, strings.Repeat("x", 2<<20)) }()
	if got, err := read(); err != nil || got.Code != api.CodeTooLarge {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := read(); err == nil {
		t.Error("the response goes on")
	}
}

// A body that breaks off leaves what was acknowledged, and nothing of a line that is not whole.
func TestEmitLinesBrokenOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	send, read, server := liveLines(t, b.api)
	_, _ = io.WriteString(send, `{"TYPE":"A"}`+"\n")
	if got, err := read(); err != nil || len(got.EventIDs) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	_, _ = io.WriteString(send, `{"TYPE":"B"}`)
	_ = send.CloseWithError(io.ErrUnexpectedEOF)
	server.Close() // waits for the handler
	if len(b.journal.events) != 1 {
		t.Errorf("%d events, want the acknowledged one", len(b.journal.events))
	}
}

// leavingJournal is one whose first append begins when the request is known to be over.
type leavingJournal struct {
	*fakeJournal
	left chan struct{}
}

func (j leavingJournal) Emit(ctx context.Context, events []event.Event, once *journal.Idempotency) (journal.Receipt, error) {
	<-j.left
	if err := ctx.Err(); err != nil {
		return journal.Receipt{}, err
	}
	return j.fakeJournal.Emit(ctx, events, once)
}

// What a client has sent whole is appended, and answered, though it has closed its side of the connection.
func TestEmitLinesOfAClientThatSendsNoMore(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{"after the body": "0\r\n\r\n", "amid a line": "9\r\n{\"TYPE\":\"\r\n", "amid a chunk": "ff\r\n{"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := leavingJournal{newFake(), make(chan struct{})}
			a := api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Emit(j))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer context.AfterFunc(r.Context(), func() { close(j.left) })()
				a.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			lines := `{"TYPE":"A"}` + "\n" + `{"idempotencyKey":"k","events":[{"TYPE":"B"}]}` + "\n"
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%s",
				eventPath, secret(access.Producer), len(lines), lines, rest)
			_ = conn.(*net.TCPConn).CloseWrite()
			got, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(got.Body) // which may end without an end, as that of the request has
			if all := results(t, string(body)); len(all) != 2 || len(all[0].EventIDs) != 1 || len(all[1].EventIDs) != 1 || len(j.events) != 2 {
				t.Errorf("%s", body)
			}
		})
	}
}

// A host that stops ends the response after what it has read.
func TestEmitLinesStopping(t *testing.T) {
	t.Parallel()
	stopping, stop := context.WithCancel(t.Context())
	b := setup(t, func(o *api.Options) { o.Stopping = stopping })
	send, read, _ := liveLines(t, b.api)
	_, _ = io.WriteString(send, `{"TYPE":"A"}`+"\n")
	if got, err := read(); err != nil || len(got.EventIDs) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	time.AfterFunc(time.Millisecond, stop)
	if _, err := read(); !errors.Is(err, io.EOF) {
		t.Errorf("the end = %v", err)
	}
}
