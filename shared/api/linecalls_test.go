package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store/memory"
)

// linesOf sends lines to an operation as a whole, and returns those of the response.
func (b *bundle) linesOf(t *testing.T, role access.Role, path, body string) []string {
	t.Helper()
	got := b.as(t, role, "POST", path, body, "Content-Type", "application/x-ndjson")
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("POST %s = %d %s", path, got.StatusCode, got.body)
	}
	return strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
}

// problemOf returns the problem that a line is.
func problemOf(t *testing.T, line string) (p api.Problem) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &p); err != nil || p.RequestID == "" {
		t.Fatalf("line %q: %v", line, err)
	}
	return p
}

// Each line is as a request: it has a result of its own, and a key of its own.
func TestJobsByLines(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	keyed := `{"idempotencyKey":"k","body":[{"topic":"a","priority":7}]}`
	lines := []struct{ line, at string }{
		{`[{"topic":"a"},{"topic":"a","properties":{"n":1}}]`, ""}, {`[]`, "body"}, {`{`, "body"}, {` [{"topic":"a b"}] ` + "\r", "body[0].topic"}, {keyed, ""}, {keyed, ""},
		{`{"idempotencyKey":"k","body":[{"topic":"a"}]}`, "body.idempotencyKey"}, {`{"idempotencyKey":"","body":[]}`, "body.idempotencyKey"},
		{`{"idempotencyKey":"k"}`, "body.body"}, {`{"idempotencyKey":"k","body":[],"more":1}`, "body.more"}, {`{"body":[{"topic":"a"}]}`, "body"}, {`[{"topic":"a"}]`, ""},
	}
	var body []string
	for _, l := range lines {
		body = append(body, l.line, "", " \t")
	}
	got := w.linesOf(t, access.Producer, jobsPath+":batch", strings.Join(body, "\n"))
	if len(got) != len(lines) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(lines), strings.Join(got, "\n"))
	}
	for i, l := range lines {
		if l.at == "" {
			if !strings.HasPrefix(got[i], `[{"id":"`) {
				t.Errorf("%s: %s", l.line, got[i])
			}
		} else if p := problemOf(t, got[i]); len(p.Errors) == 0 || p.Errors[0].Location != l.at {
			t.Errorf("%s: %s, want a problem at %s", l.line, got[i], l.at)
		}
	}
	if got[4] != got[5] {
		t.Errorf("under the same key: %s and %s", got[4], got[5])
	}
	byHeader := w.as(t, access.Producer, "POST", jobsPath+":batch", `[{"topic":"a","priority":7}]`, "Idempotency-Key", "k")
	if byHeader.body != got[4] || byHeader.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same by the header = %d %s, want %s", byHeader.StatusCode, byHeader.body, got[4])
	}
	if all := w.ids(t, "GET", jobsPath, ""); len(all) != 4 {
		t.Errorf("%d jobs, want 4", len(all))
	}
}

func TestLinesRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	const lines, line = "application/x-ndjson", `[{"topic":"a"}]`
	wantProblem(t, w.as(t, access.Producer, "POST", jobsPath+":batch", line, "Content-Type", lines, "Idempotency-Key", "k"), 400, api.CodeInvalid, "header.Idempotency-Key")
	wantProblem(t, w.as(t, access.Producer, "POST", jobsPath+":batch", line, "Content-Type", lines, "Content-Encoding", "gzip"), 415, api.CodeMediaType, "header.Content-Encoding")
	wantProblem(t, w.as(t, access.Viewer, "POST", jobsPath+":batch", line, "Content-Type", lines), 403, api.CodeForbidden)
	wantProblem(t, w.as(t, "", "POST", jobsPath+":batch", line, "Content-Type", lines), 401, api.CodeUnauthorized)
	wantProblem(t, w.as(t, access.Producer, "POST", jobsPath, line, "Content-Type", lines), 415, api.CodeMediaType, "header.Content-Type")
	if all := w.ids(t, "GET", jobsPath, ""); len(all) != 0 {
		t.Errorf("%d jobs, want none", len(all))
	}
}

func TestALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	long := `[{"topic":"` + strings.Repeat("a", 1<<20) + `"}]`
	got := w.linesOf(t, access.Producer, jobsPath+":batch", `[{"topic":"a"}]`+"\n"+long+"\n"+`[{"topic":"a"}]`)
	if len(got) != 2 || problemOf(t, got[1]).Code != api.CodeTooLarge {
		t.Errorf("%d lines: %.200s", len(got), got)
	}
}

// openLines begins a request of lines to an operation over a connection. In has the response.
func openLines(t *testing.T, h http.Handler, role access.Role, path string) (send *io.PipeWriter, in *bufio.Reader, server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(h)
	t.Cleanup(server.Close)
	body, send := io.Pipe()
	t.Cleanup(func() { _ = send.Close() })
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret(role))
	r.Header.Set("Content-Type", "application/x-ndjson")
	got, err := server.Client().Do(r) // the response begins before a line is sent
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = got.Body.Close() })
	return send, bufio.NewReader(got.Body), server
}

// liveCalls begins a request of lines. Its call sends a line and returns that of the response.
func liveCalls(t *testing.T, h http.Handler, role access.Role, path string) (send *io.PipeWriter, call func(line string) string, server *httptest.Server) {
	t.Helper()
	send, in, server := openLines(t, h, role, path)
	return send, func(line string) string {
		if _, err := io.WriteString(send, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}, server
}

// A client that sends no body before it is told to (RFC 9110, 10.1.1) is told before the response begins.
func TestAClientThatWaitsToSendLines(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		served http.Handler
		line   string
	}{eventPath: {setup(t).api, `{"TYPE":"A"}`}, jobsPath + ":batch": {topical(t, run("a")).api, `[{"topic":"a"}]`}} {
		server := httptest.NewServer(c.served)
		t.Cleanup(server.Close)
		server.Client().Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
		told := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { told = true }})
		body, send := io.Pipe()
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + secret(access.Producer)}, "Content-Type": {"application/x-ndjson"}, "Expect": {"100-continue"}}
		got, err := server.Client().Do(r)
		if err != nil || got.StatusCode != 200 || !told {
			t.Fatalf("%s: %v, %v, told to send: %t", path, got, err, told)
		}
		_, _ = io.WriteString(send, c.line)
		_ = send.Close()
		if answer, err := io.ReadAll(got.Body); err != nil || len(answer) == 0 || bytes.Contains(answer, []byte(`"code"`)) {
			t.Errorf("%s = %s, %v", path, answer, err)
		}
		_ = got.Body.Close()
	}
}

func TestExchangesByLines(t *testing.T) {
	t.Parallel()
	r := exchanging(t, memory.New(memory.Options{}), overWire)
	w := r.register(t, "/topics/a/*")
	send, call, server := liveCalls(t, r.api, access.Worker, w+"/exchange")
	r.fill(t, 3)
	results := `"results":[]`
	for seq := range 3 {
		var got exchanged
		if err := json.Unmarshal([]byte(call(fmt.Sprintf(`{"seq":%d,"max":1,"wait":"20s",%s}`, seq, results))), &got); err != nil || len(got.Claims) != 1 || len(got.Results) != min(seq, 1) {
			t.Fatalf("exchange %d = %+v, %v", seq, got, err)
		}
		results = resultsOf(got.Claims)
	}
	if p := problemOf(t, call(`{"seq":1}`)); p.Code != api.CodeConflict {
		t.Errorf("an older exchange = %+v", p)
	}
	if p := problemOf(t, call(`{"max":1}`)); p.Code != api.CodeInvalid {
		t.Errorf("an exchange without seq = %+v", p)
	}
	_ = send.Close()
	server.Close() // waits for the handler
}

func overWire(o *api.Options) { o.CanStream = true }

// heldExchange is exchanges that wait until they are told to end.
type heldExchange struct {
	began chan struct{}
	ended chan error
}

func (h *heldExchange) Look(context.Context, string, *exchanges.Request) (exchanges.Look, error) {
	return exchanges.Look{Instance: membership.Instance{Owner: string(access.Worker)}}, nil
}

func (h *heldExchange) Exchange(ctx context.Context, _ string, _ exchanges.Request) (exchanges.Response, error) {
	close(h.began)
	<-ctx.Done()
	h.ended <- ctx.Err()
	return exchanges.Response{}, ctx.Err()
}

// An exchange that waits ends when its client has left, as one does that is a request: nothing is claimed for who is gone.
func TestLeavingALineThatWaits(t *testing.T) {
	t.Parallel()
	h := &heldExchange{began: make(chan struct{}), ended: make(chan error, 1)}
	a := api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Exchange(h))
	send, _, server := liveCalls(t, a, access.Worker, "/api/v1/instances/i/exchange")
	if _, err := io.WriteString(send, `{"seq":1,"max":1,"wait":"1h"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	<-h.began
	server.CloseClientConnections()
	if err := <-h.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the exchange ended with %v", err)
	}
}

// revocable is an API whose tokens are all taken back once taken is set.
func revocable(taken *atomic.Bool) func(*api.Options) {
	return func(o *api.Options) {
		known := o.Tokens
		o.Accept = func() []access.Token {
			if taken.Load() {
				return nil
			}
			return known
		}
	}
}

// A token that is taken back while lines come is not known from the next line on.
func TestATokenIsTakenBackBetweenLines(t *testing.T) {
	t.Parallel()
	var taken atomic.Bool
	r := exchanging(t, memory.New(memory.Options{}), overWire, revocable(&taken))
	w := r.register(t, "/topics/a/*")
	_, call, _ := liveCalls(t, r.api, access.Worker, w+"/exchange")
	if got := call(`{"seq":1}`); !strings.HasPrefix(got, `{"expires_at"`) {
		t.Errorf("exchange = %s", got)
	}
	taken.Store(true)
	if p := problemOf(t, call(`{"seq":2}`)); p.Code != api.CodeUnauthorized {
		t.Errorf("with a token that is not known any more: %+v", p)
	}
}

func TestATokenIsTakenBackBetweenEvents(t *testing.T) {
	t.Parallel()
	var taken atomic.Bool
	b := setup(t, overWire, revocable(&taken))
	_, call, _ := liveCalls(t, b.api, access.Producer, eventPath)
	if got := call(`{"TYPE":"A"}`); !strings.HasPrefix(got, `{"eventIds"`) {
		t.Errorf("emit = %s", got)
	}
	taken.Store(true)
	if p := problemOf(t, call(`{"TYPE":"A"}`)); p.Code != api.CodeUnauthorized || len(b.journal.events) != 1 {
		t.Errorf("with a token that is not known any more: %+v, %d events", p, len(b.journal.events))
	}
}

func TestStreamsByLines(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	first, second := strings.ReplaceAll(happened("a"), "\n", " "), strings.ReplaceAll(happened("b"), "\n", " ")
	body := "[" + first + "," + second + "]\n[{}]\n" + `{"idempotencyKey":"k","body":[` + first + "]}\n"
	path := streams + "s/events:batch"
	got := b.as(t, access.Producer, "POST", path, body+body, "Content-Type", "application/x-ndjson", "X-Producer-ID", producer1)
	lines := strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
	if got.StatusCode != 200 || len(lines) != 6 || lines[2] != lines[5] {
		t.Fatalf("POST %s = %d %s", path, got.StatusCode, got.body)
	}
	sequences := ""
	for _, line := range lines {
		var all []appended
		if json.Unmarshal([]byte(line), &all) != nil {
			sequences += problemOf(t, line).Errors[0].Location + " "
		}
		for _, a := range all {
			sequences += fmt.Sprint(a.Name, a.Sequence, " ")
		}
	}
	if want := "a1 b1 body[0].event a2 a3 b2 body[0].event a2 "; sequences != want {
		t.Errorf("%s, want %s", sequences, want)
	}
	other := b.as(t, access.Producer, "POST", path, body, "Content-Type", "application/x-ndjson", "X-Producer-ID", producer2)
	if p := problemOf(t, strings.Split(other.body, "\n")[0]); p.Status != http.StatusLocked {
		t.Errorf("another producer's line = %+v", p)
	}
}

// Each line is measured as a request, and what carries them is not: it may be open for hours.
func TestLinesAreMeasured(t *testing.T) {
	t.Parallel()
	m := &measured{}
	b := setup(t, func(o *api.Options) { o.Metrics = m })
	b.emitLines(t, `{"TYPE":"A"}`+"\n"+`{"TYPE":""}`+"\n")
	route := "POST " + eventPath
	want := []string{route + " 201", route + " 400", "emit appended 1", "emit invalid 0"}
	if diff := cmp.Diff(want, m.lines); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

// How a line is spaced makes no other call of it.
func TestKeysInLinesHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := []string{
		`{"idempotencyKey":"k","events":[{"TYPE":"A"}]}`, `{"idempotencyKey":"k","events": [{"TYPE":"A"}] }`,
		`{ "idempotencyKey" : "k", "events": [{"TYPE":"A"}] }`, `{"events":[{"TYPE":"A"}],"idempotencyKey":"k"}`,
	}
	for _, got := range b.linesOf(t, access.Producer, eventPath, strings.Join(lines, "\n")) {
		if got != fmt.Sprintf(`{"eventIds":[%d]}`, firstID) {
			t.Errorf("a repetition = %s", got)
		}
	}
	w := topical(t, run("a"))
	same := w.linesOf(t, access.Producer, jobsPath+":batch", `{"idempotencyKey":"k","body":[{"topic":"a"}]}`+"\n"+
		`{"idempotencyKey":"k","body":  [{"topic":"a"}] }`+"\n"+`{"body":[{"topic":"a"}] , "idempotencyKey":"k"}`)
	if same[0] != same[1] || same[0] != same[2] {
		t.Errorf("repetitions = %s", strings.Join(same, "\n"))
	}
}

// panickingJournal is a journal with a fault in it.
type panickingJournal struct{ api.Emitter }

func (panickingJournal) Emit(context.Context, []event.Event, *journal.Idempotency) (journal.Receipt, error) {
	panic("a fault")
}

// A fault breaks the response off, and leaves no client waiting.
func TestAFaultWhileLinesCome(t *testing.T) {
	t.Parallel()
	for _, lines := range []string{`{"TYPE":"A"}` + "\n", `{"TYPE":"A"}` + "\n" + `{"TYPE":"A"}` + "\n"} {
		a := api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Emit(panickingJournal{}))
		send, in, _ := openLines(t, a, access.Producer, eventPath)
		if _, err := io.WriteString(send, lines); err != nil {
			t.Fatal(err)
		}
		if got, err := in.ReadString('\n'); err == nil {
			t.Errorf("a line after a fault: %s", got)
		}
	}
}
