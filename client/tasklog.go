package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// LogLine is a line of a task's log.
type LogLine struct {
	Time    Time   `json:"time"`
	Message string `json:"message"`
	Level   string `json:"level"` // info, error, warn or debug
}

// SyncTaskLogs yields the log of a task so far. An error is the last it yields.
func (c *Client) SyncTaskLogs(ctx context.Context, id string) iter.Seq2[LogLine, error] {
	return pages[LogLine](ctx, c, "log of "+id, "logs", logPath(id), url.Values{}, 0)
}

func logPath(id string) string { return v1 + "tasks/" + url.PathEscape(id) + "/logs" }

// FollowLogs yields the log of a task as it is written, until the task is finished. It outlives restarts of the server and
// failures of the network, and yields each line once. An error is the last it yields; only the first response must come before
// the client's patience ends.
func (c *Client) FollowLogs(ctx context.Context, id string) iter.Seq2[LogLine, error] {
	return func(yield func(LogLine, error) bool) {
		f := &logFollower{client: c, path: logPath(id), yield: yield}
		if err := f.follow(ctx); err != nil && !errors.Is(err, errEnough) {
			yield(LogLine{}, fmt.Errorf("client: log of %s: %w", id, err))
		}
	}
}

// errEnough says that the caller has broken the loop.
var errEnough = errors.New("enough")

// logFollower follows one log over any number of connections.
type logFollower struct {
	client   *Client
	path     string
	yield    func(LogLine, error) bool
	after    string    // Last-Event-ID
	pending  []LogLine // read, but not yet followed by an id: after a broken connection they are read again
	answered bool      // the server has responded with 200
	ended    bool      // the server has sent the event "end"
}

func (f *logFollower) follow(ctx context.Context) error {
	began := time.Now()
	for pause := newPause(); ; {
		before := f.after
		f.pending = nil
		err := f.connect(ctx)
		if f.ended || errors.Is(err, errEnough) {
			return err
		}
		if f.after != before {
			pause = newPause()
			continue
		}
		wait := pause.next(err)
		impatient := !f.answered && wait > f.client.atMost(f.client.patience, err)-time.Since(began)
		if err != nil && (ctx.Err() != nil || !Temporary(err) || impatient) {
			return err
		}
		if err != nil {
			f.client.onRetry(err, wait)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// connect reads one event stream to its end.
func (f *logFollower) connect(ctx context.Context) error {
	request, err := f.client.request(ctx, call{method: http.MethodGet, path: f.path, query: url.Values{"follow": {"true"}}})
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	if f.after != "" {
		request.Header.Set("Last-Event-ID", f.after)
	}
	response, err := f.client.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return failure(response, body)
	}
	f.answered = true
	return f.read(response.Body)
}

// maxEvent is the longest line of an event stream: a message has at most 64 KiB, more with escapes.
const maxEvent = 1 << 20

// read reads server-sent events (WHATWG HTML, 9.2).
func (f *logFollower) read(body io.Reader) error {
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxEvent)
	for s.Scan() {
		field, value, _ := strings.Cut(s.Text(), ": ")
		switch field {
		case "id":
			f.after = value
			if err := f.hand(); err != nil {
				return err
			}
		case "event":
			if f.ended = value == "end"; f.ended {
				return nil
			}
		case "data":
			var line LogLine
			if err := json.Unmarshal([]byte(value), &line); err != nil {
				return fmt.Errorf("answer: %w", err)
			}
			f.pending = append(f.pending, line)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%w: %w", errBrokenOff, err)
	}
	return nil
}

// hand yields the pending lines, which an id has confirmed.
func (f *logFollower) hand() error {
	for _, line := range f.pending {
		if !f.yield(line, nil) {
			return errEnough
		}
	}
	f.pending = f.pending[:0]
	return nil
}
