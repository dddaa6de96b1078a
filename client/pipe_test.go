package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// pipeServer appends what it is asked for, once for each key, by requests and by lines.
type pipeServer struct {
	*httptest.Server
	refuses  int                    // status for a request of lines; 0: it takes them
	patience time.Duration          // of its client
	padding  int                    // spaces before each result
	silent   bool                   // it takes lines and does not stream
	extra    func(line string) bool // says that a line gets a result too many
	dies     func(line string) bool // says that the connection breaks off before the result of a line

	mu       sync.Mutex
	requests int // with one body
	pipes    int // with lines, that were opened or refused
	lines    int
	ids      map[string]int // by key or element
	open     map[*http.ResponseController]bool
}

func newPipeServer(t *testing.T, s *pipeServer) (*pipeServer, *client.Client) {
	t.Helper()
	s.ids, s.open = map[string]int{}, map[*http.ResponseController]bool{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	c, err := client.New(client.Options{URL: s.URL, Patience: s.patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s, c
}

func (s *pipeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != "application/x-ndjson" {
		body, _ := io.ReadAll(r.Body)
		s.count(&s.requests)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, s.result(r.Header.Get("Idempotency-Key"), string(body)))
		return
	}
	s.count(&s.pipes)
	switch {
	case s.refuses != 0:
		w.WriteHeader(s.refuses)
	case s.silent:
		_, _ = io.Copy(io.Discard, r.Body)
	default:
		s.serveLines(w, r)
	}
}

func (s *pipeServer) serveLines(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	_ = out.EnableFullDuplex()
	w.WriteHeader(http.StatusOK)
	_ = out.Flush()
	s.mu.Lock()
	s.open[out] = true
	s.mu.Unlock()
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		s.count(&s.lines)
		var keyed struct {
			Key    string `json:"idempotencyKey"`
			Events json.RawMessage
			Body   json.RawMessage
		}
		body := strings.TrimSuffix(line, "\n")
		if json.Unmarshal([]byte(line), &keyed) == nil && keyed.Key != "" {
			body = string(keyed.Events) + string(keyed.Body)
		}
		result := s.result(keyed.Key, body)
		if s.dies != nil && s.dies(line) {
			_ = out.SetReadDeadline(time.Unix(1, 0)) // or it would wait for the body
			panic(http.ErrAbortHandler)
		}
		if s.extra != nil && s.extra(line) {
			result += "\n" + `{"eventIds":[0]}`
		}
		_, _ = io.WriteString(w, strings.Repeat(" ", s.padding)+result+"\n")
		_ = out.Flush()
	}
}

func (s *pipeServer) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// result appends an element, and returns what the response says.
func (s *pipeServer) result(key, body string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(body, "refused") {
		at := "body"
		if strings.HasPrefix(body, "[") {
			at = "body[0]"
		}
		return fmt.Sprintf(`{"type":"/docs#invalid","status":400,"code":"invalid","detail":"%s.topic: no","errors":[{"location":"%[1]s.topic","message":"no"}]}`, at)
	}
	if key == "" {
		key = body
	}
	if s.ids[key] == 0 {
		s.ids[key] = len(s.ids) + 1
	}
	if strings.Contains(body, "topic") || strings.Contains(body, "trigger") {
		return fmt.Sprintf(`[{"id":"%d"}]`, s.ids[key])
	}
	return fmt.Sprintf(`{"eventIds":[%d]}`, s.ids[key])
}

// seen returns how many requests, pipes and lines there were.
func (s *pipeServer) seen() (requests, pipes, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.pipes, s.lines
}

// hangUp ends all requests of lines, as a server does that stops.
func (s *pipeServer) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for out := range s.open {
		_ = out.SetReadDeadline(time.Unix(1, 0))
	}
	s.CloseClientConnections()
	clear(s.open)
}

// emitUntil emits until the server has seen enough, and returns how many events it has emitted.
func emitUntil(t *testing.T, c *client.Client, enough func() bool) (n int) {
	t.Helper()
	for !enough() {
		if t.Context().Err() != nil {
			t.Fatal("there is no pipe")
		}
		emitOne(t, c, n+1)
		n++
	}
	return n
}

func emitOne(t *testing.T, c *client.Client, want int) {
	t.Helper()
	ids, err := c.Emit(t.Context(), []event.Event{{Type: "A"}})
	if err != nil || len(ids) != 1 || ids[0] != event.ID(want) {
		t.Fatalf("Emit = %v, %v, want %d", ids, err, want)
	}
}

func TestFrequentCallsGoThroughAPipe(t *testing.T) {
	t.Parallel()
	for _, padding := range []int{0, 3000, 9000, 1 << 20} { // below and above what net/http sends at once
		t.Run(fmt.Sprint(padding), func(t *testing.T) {
			t.Parallel()
			s, c := newPipeServer(t, &pipeServer{padding: padding})
			callThroughAPipe(t, s, c)
		})
	}
}

func callThroughAPipe(t *testing.T, s *pipeServer, c *client.Client) {
	t.Helper()
	n := emitUntil(t, c, func() bool { _, _, lines := s.seen(); return lines > 0 })
	requests, pipes, _ := s.seen()
	for range 100 {
		n++
		emitOne(t, c, n)
	}
	if more, opened, lines := s.seen(); more != requests || opened != pipes || pipes != 1 || lines != 101 {
		t.Errorf("%d more requests and %d pipes for 100 calls, with %d lines", more-requests, opened, lines)
	}
	c.Close()
	emitOne(t, c, n+1) // as a request again
}

func TestFewCallsOpenNoPipe(t *testing.T) {
	t.Parallel()
	s, c := newPipeServer(t, &pipeServer{})
	for n := range 10 {
		emitOne(t, c, n+1)
	}
	if requests, pipes, _ := s.seen(); requests != 10 || pipes != 0 {
		t.Errorf("%d requests and %d pipes", requests, pipes)
	}
}

// A pipe that breaks off before a result costs nothing: the call is made again under its key.
func TestAPipeBreaksOff(t *testing.T) {
	t.Parallel()
	died := 0
	s, c := newPipeServer(t, &pipeServer{dies: func(string) bool { died++; return died%3 == 0 }})
	emitUntil(t, c, func() bool { _, pipes, _ := s.seen(); return pipes > 5 })
}

// A pipe that the server has ended while it was idle is not used, even by a call that must not be made twice.
func TestAPipeThatTheServerHasEnded(t *testing.T) {
	t.Parallel()
	s, c := newPipeServer(t, &pipeServer{patience: -1})
	emit := func() {
		if _, err := c.Emit(t.Context(), []event.Event{{Type: "A"}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		for _, before, _ := s.seen(); ; {
			if _, pipes, _ := s.seen(); pipes > before {
				break
			}
			emit()
		}
		s.hangUp()
		emit()
	}
}

func TestServersThatTakeNoLines(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*pipeServer{
		"an older one": {refuses: http.StatusUnsupportedMediaType}, "one that does not stream": {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newPipeServer(t, s)
			n := emitUntil(t, c, func() bool { _, pipes, _ := s.seen(); return pipes > 0 })
			for range 100 {
				n++
				emitOne(t, c, n)
			}
			if requests, pipes, _ := s.seen(); requests != n || pipes != 1 {
				t.Errorf("%d requests for %d calls, and %d tries", requests, n, pipes)
			}
		})
	}
}

func TestARefusalThroughAPipe(t *testing.T) {
	t.Parallel()
	s, c := newPipeServer(t, &pipeServer{})
	for {
		job, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "t"})
		if _, _, lines := s.seen(); lines > 0 {
			if err != nil || job.ID == "" {
				t.Fatalf("AddJob = %v, %v", job, err)
			}
			break
		}
	}
	_, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "refused"})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != 400 || refused.Code != "invalid" || refused.Fields[0].Location != "body.topic" {
		t.Errorf("AddJob = %v", err)
	}
	if _, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "t"}); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	if _, pipes, lines := s.seen(); pipes != 1 || lines != 3 {
		t.Errorf("%d pipes, %d lines", pipes, lines)
	}
}

// A caller that leaves takes its pipe along, whose next result would be that of another call.
func TestLeavingACallThroughAPipe(t *testing.T) {
	t.Parallel()
	came, goes := make(chan struct{}, 1), make(chan struct{})
	s, c := newPipeServer(t, &pipeServer{dies: func(line string) bool {
		if strings.Contains(line, "Held") {
			came <- struct{}{}
			<-goes
		}
		return false
	}})
	n := emitUntil(t, c, func() bool { _, _, lines := s.seen(); return lines > 0 })
	ctx, leave := context.WithCancelCause(t.Context())
	left := errors.New("left")
	go func() {
		<-came
		leave(left)
	}()
	if _, err := c.Emit(ctx, []event.Event{{Type: "Held"}}); !errors.Is(err, left) {
		t.Errorf("Emit = %v", err)
	}
	close(goes)
	emitOne(t, c, n+2)
}

// A call that is not wanted any more is not made, and leaves the pipe to others.
func TestACallThatNobodyWantsAnyMore(t *testing.T) {
	t.Parallel()
	s, c := newPipeServer(t, &pipeServer{})
	n := emitUntil(t, c, func() bool { _, _, lines := s.seen(); return lines > 0 })
	ctx, end := context.WithCancel(t.Context())
	end()
	_, pipes, before := s.seen()
	for range 50 {
		if _, err := c.Emit(ctx, []event.Event{{Type: "A"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("Emit = %v", err)
		}
	}
	emitOne(t, c, n+1)
	if _, opened, lines := s.seen(); lines != before+1 || opened != pipes {
		t.Errorf("%d lines and %d pipes more, want the last call's line", lines-before, opened-pipes)
	}
}

// A result too many is never that of the next call.
func TestAResultThatNobodyHasAskedFor(t *testing.T) {
	t.Parallel()
	calls := 0
	s, c := newPipeServer(t, &pipeServer{extra: func(string) bool { calls++; return calls%3 == 0 }})
	emitUntil(t, c, func() bool { _, pipes, _ := s.seen(); return pipes > 4 })
}

// Keys of the caller's are part of a line only where they need no escapes, and so is a header that requests can have. Everything else is
// what it is as a request.
func TestKeysThatAreNotPlain(t *testing.T) {
	t.Parallel()
	s, c := newPipeServer(t, &pipeServer{patience: -1})
	producer := "2480b859-e08a-4414-9c7d-003bc1a4c238"
	call := func(producer, key string) error {
		_, err := c.AppendToStream(t.Context(), producer, "s", key, client.StreamEvent{Trigger: client.StreamTrigger{Type: "manual", Name: "n"}})
		return err
	}
	for n := 0; ; n++ {
		if err := call(producer, fmt.Sprint("key-", n)); err != nil {
			t.Fatal(err)
		}
		if _, _, lines := s.seen(); lines > 0 {
			break
		}
	}
	_, _, before := s.seen()
	for key, sent := range map[string]bool{`a"b`: true, `a\b`: true, "a\nb": false, "x\"}\n[]\n{\"x\":\"": false} {
		requests, _, _ := s.seen()
		err := call(producer, key)
		if now, _, lines := s.seen(); lines != before || sent != (err == nil && now == requests+1) {
			t.Errorf("key %q: %v, with %d requests and %d lines more", key, err, now-requests, lines-before)
		}
	}
	for range 100 {
		if err := call("a\r\nb", "k"); err == nil {
			t.Fatal("a header was sent that no request can have")
		}
		if err := call(producer, `"`); err != nil { // which takes longer than to open a pipe
			t.Fatal(err)
		}
	}
	if _, _, lines := s.seen(); lines != before {
		t.Errorf("%d lines more", lines-before)
	}
}
