package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/task"
)

// logPage is how many lines are read at once.
const logPage = 1000

// How often a log that is followed is read: soon after lines have come, ever more seldom while none do.
const (
	lookSoon = 50 * time.Millisecond
	lookLate = time.Second
)

func describeLogs() *operation {
	page := pageParams()
	page[0].Description, page[0].Schema.Default = "At most so many lines. Default: all that the host can carry", nil
	follow := yesNo("")
	follow.Default = false
	op := &operation{
		ID: "syncTaskLogs", Tags: []string{"Sync tasks"}, Summary: "A task's log, whatever kind of task it is",
		Description: "Lines in their order. With follow=true and Accept: text/event-stream, as they come until the task is finished, " +
			"then an event named end; Last-Event-ID goes on.",
		Parameters: append(params{
			pathParam("id", "The task's id"),
			queryParam("start", "Logged then or later", false, dateTime("")), queryParam("end", "Logged then or earlier", false, dateTime("")),
			queryParam("follow", "", false, follow),
			lastEventID("Of a log that is followed: the id of the last line, to go on from. A client that connects again sends it by itself"),
		}, page...),
		Responses: pageIn("logs", ref("LogLine")), failures: []int{404},
	}
	op.Responses["200"].Content[typeSSE] = &media{Schema: text("Server-sent events; data is a line, id where to go on")}
	return op
}

// logReading is one reading of a log.
type logReading struct {
	x      *exchange
	engine Engine
	id     task.ID
	ask    tasklog.Query
	limit  int // lines; 0: all
	query  query
	seen   bool // where to go on is from the header Last-Event-ID
	lines  int  // rendered so far
	held   *buffer
}

func (t *taskReading) logs(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	r := &logReading{x: x, engine: t.engine, query: q}
	follow, err := r.read(q)
	if err != nil {
		return err
	}
	found, err := x.findAny(t.engine)
	if err != nil {
		return err
	}
	r.id, r.held = found.ID, take()
	defer r.held.give()
	if follow && preferred(x.r.Header, typeJSON, typeSSE) == typeSSE {
		return r.follow()
	}
	return r.once()
}

// read reads the parameters of the query.
func (r *logReading) read(q query) (follow bool, err error) {
	if r.ask.From, err = q.time("start"); err != nil {
		return false, err
	}
	if r.ask.To, err = q.time("end"); err != nil {
		return false, err
	}
	if r.ask.After, err = q.cursor(); err != nil {
		return false, err
	}
	if _, given := q.values["limit"]; given {
		if r.limit, err = q.page(); err != nil {
			return false, err
		}
	}
	value, given, err := q.one("follow")
	if given && err == nil && value != "true" && value != "false" {
		err = invalid("query.follow", "want true or false")
	}
	return value == "true", err
}

// next reads the next lines.
func (r *logReading) next(ctx context.Context) (tasklog.Page, error) {
	r.ask.Limit = logPage
	if r.limit > 0 {
		r.ask.Limit = min(logPage, r.limit-r.lines)
	}
	page, err := r.engine.Logs(ctx, r.id, r.ask)
	if r.seen && errors.Is(err, queue.ErrInvalid) {
		return page, invalid("header.Last-Event-ID", "is the id of no line of a log")
	}
	if err != nil {
		return page, ofCursor(err)
	}
	r.ask.After = page.Cursor
	r.lines += len(page.Lines)
	return page, nil
}

// once responds with the lines there are: all of them where the host passes on what is written, otherwise as many as it
// can carry.
func (r *logReading) once() error {
	b := r.held
	b.bytes = append(b.bytes, `{"logs":[`...)
	for sent := false; ; {
		before := r.lines
		page, err := r.next(r.x.r.Context())
		if err != nil {
			return err
		}
		if err := b.lines(page.Lines, before > 0); err != nil {
			return err
		}
		full := r.limit > 0 && r.lines >= r.limit || !r.x.api.canStream && len(b.bytes) >= r.x.api.maxAnswer
		if page.More && !full {
			if r.x.api.canStream && r.limit == 0 && len(b.bytes) > chunk {
				sent = r.send(sent)
			}
			continue
		}
		if page.More {
			r.x.next(r.query, page.Cursor)
		}
		b.bytes = append(b.bytes, `]}`...)
		if sent {
			r.send(sent)
			return nil
		}
		r.x.json(http.StatusOK, b.bytes)
		return nil
	}
}

// lines renders lines with commas between them, and before the first if others came before it.
func (b *buffer) lines(lines []tasklog.Line, more bool) error {
	for i := range lines {
		if more || i > 0 {
			b.bytes = append(b.bytes, ',')
		}
		if err := b.line(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// send passes on what is rendered. That the client has left shows at the next reading.
func (r *logReading) send(begun bool) (sent bool) {
	if !begun {
		r.x.Header()["Content-Type"] = []string{typeJSON}
		r.x.WriteHeader(http.StatusOK)
	}
	r.x.unhurried()
	_, _ = r.x.Write(r.held.bytes)
	r.held.bytes = r.held.bytes[:0]
	return true
}

// follow responds with lines as they come, until the task is finished or the client leaves. A host that cannot stream
// sends the first that come; the client asks again.
func (r *logReading) follow() error {
	x := r.x
	if x.r.Method == http.MethodHead {
		return x.head(typeSSE)
	}
	if seen := first(x.r.Header, "Last-Event-Id"); seen != "" {
		r.ask.After, r.seen = seen, true
	}
	x.waiting(+1)
	defer x.waiting(-1)
	s := &outflow{x: x}
	if !x.api.canStream {
		return r.finite(s)
	}
	page, err := r.next(x.r.Context()) // before the response begins, so that the request can still be refused
	if err != nil {
		return err
	}
	s.begin(typeSSE)
	ctx, cancel := x.untilStopped()
	defer cancel()
	return r.stream(ctx, s, page)
}

// untilStopped returns the request's context, which ends when the host is to stop too.
func (x *exchange) untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(x.r.Context())
	stop := context.AfterFunc(x.api.stopping, cancel)
	return ctx, func() { stop(); cancel() }
}

func (r *logReading) stream(ctx context.Context, s *outflow, page tasklog.Page) error {
	idle, pause := time.Duration(0), lookSoon
	for {
		over, err := r.render(s, &page)
		if err != nil {
			return err
		}
		if len(page.Lines) > 0 {
			idle, pause = 0, lookSoon
		} else if idle >= heartbeat {
			idle = 0
			out := s.out()
			*out = append(*out, ":\n\n"...)
		}
		if s.push() != nil || over {
			return nil
		}
		if !page.More {
			if !rest(ctx, pause) {
				return nil
			}
			idle, pause = idle+pause, min(2*pause, lookLate)
		}
		if page, err = r.next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// finite responds with the first lines that come while the host lets the request wait.
func (r *logReading) finite(s *outflow) error {
	ctx, cancel := r.x.untilStopped()
	defer cancel()
	ctx, done := context.WithTimeout(ctx, r.x.api.maxWait)
	defer done()
	for {
		page, err := r.next(r.x.r.Context())
		if err != nil {
			return err
		}
		if len(page.Lines) == 0 && !page.Done && rest(ctx, lookLate) {
			continue
		}
		if _, err := r.render(s, &page); err != nil {
			return err
		}
		if out := s.out(); len(*out) == 0 {
			*out = append(*out, ":\n\n"...)
		}
		s.begin(typeSSE)
		_ = s.push() // the client has left; there is nobody to tell
		return nil
	}
}

// render renders lines as events; over says that no more will come.
func (r *logReading) render(s *outflow, page *tasklog.Page) (over bool, err error) {
	b := r.held
	for i := range page.Lines {
		b.bytes = append(b.bytes, "data: "...)
		if err := b.line(&page.Lines[i]); err != nil {
			return false, err
		}
		b.bytes = append(b.bytes, '\n')
		if i == len(page.Lines)-1 { // a client that leaves in between reads these lines again, and misses none
			b.bytes = append(append(append(b.bytes, "id: "...), page.Cursor...), '\n')
		}
		b.bytes = append(b.bytes, '\n')
	}
	over = page.Done && !page.More || r.limit > 0 && r.lines >= r.limit
	if over {
		b.bytes = append(b.bytes, "event: end\ndata: {}\n\n"...)
	}
	out := s.out()
	*out = append(*out, b.bytes...)
	b.bytes = b.bytes[:0]
	return over, nil
}

// rest waits; false says that ctx ended before.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// lineView is a line of a log as clients see it.
type lineView struct {
	Time    string `json:"time"`
	Message string `json:"message"`
	Level   string `json:"level"`
}

func (b *buffer) line(l *tasklog.Line) error {
	return b.json(lineView{formatTime(l.Time), l.Message, l.Level})
}

func logLineSchema() *schema {
	return object("", members{
		"time": dateTime(""), "message": text(""), "level": choice("", "info", "error", "warn", "debug"),
	}, false, "time", "message", "level")
}
