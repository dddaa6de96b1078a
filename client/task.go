package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Why a task's context ended.
var (
	// ErrStopped says that the task is asked to stop. The function obeys by returning any error.
	ErrStopped = errors.New("client: the task is to be stopped")

	// ErrLost says that the lease is over, since the server says so or could not be reached for its length: the task may run
	// elsewhere, and its result here is not reported.
	ErrLost = errors.New("client: the task's lease is over")

	// ErrDrained says that the worker ends, and has waited for WorkerOptions.Drain.
	ErrDrained = errors.New("client: the worker ends")
)

// rejection is an error after which a task is not tried again.
type rejection struct{ error }

func (r rejection) Unwrap() error { return r.error }

// Reject returns an error, wrapping err, after which the task is not tried again even if attempts are left.
func Reject(err error) error { return rejection{err} }

// delayed is an error after which the next attempt waits.
type delayed struct {
	error
	by time.Duration
}

func (d delayed) Unwrap() error { return d.error }

// RetryAfter returns an error, wrapping err, after which the next attempt waits so long instead of the job's retry delay; 0 or less: not
// at all.
func RetryAfter(by time.Duration, err error) error { return delayed{err, by} }

// Task is an attempt at a task that a [Worker] runs. Its methods may be called concurrently.
type Task struct {
	ID      string
	Job     string          // the job's path
	Attempt int             // from 1
	Payload json.RawMessage // JSON; nil: none

	mu       sync.Mutex
	lines    []logLine
	progress *Progress
	much     chan struct{} // buffered, 1: a heartbeat is to be sent at once
}

type logLine struct {
	Time    Time   `json:"time"`
	Level   string `json:"level"`
	Message string `json:"message"`

	size int // of the message as JSON
}

// Progress is what a task reports of its progress.
type Progress struct {
	Step    int    `json:"step"`              // done so far, from 0
	Steps   int    `json:"steps"`             // in all
	ETA     Time   `json:"eta,omitzero"`      // when it will be done
	Message string `json:"message,omitempty"` // at most 2,000 characters
}

// The bounds of one heartbeat, well below the megabyte that a request may have. When they are reached it is sent at once.
const (
	linesAtOnce = 500
	bytesAtOnce = 128 << 10
	maxMessage  = 32 << 10 // of one line; the rest is cut off
)

// Log adds a line to the task's log; level is debug, info, warn or error, and a message is cut after 32 KiB. It is sent with the
// next heartbeat.
func (t *Task) Log(level, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	message = cutText(message)
	t.lines = append(t.lines, logLine{Time{time.Now().UTC()}, level, message, event.TextSize(message)})
	if t.fits() < len(t.lines) || len(t.lines) == linesAtOnce {
		t.hurry()
	}
}

// fits returns how many lines go with the next heartbeat. The caller holds mu.
func (t *Task) fits() int {
	bytes := 0
	for n := range t.lines {
		if bytes += t.lines[n].size; n > 0 && bytes > bytesAtOnce || n == linesAtOnce {
			return n
		}
	}
	return len(t.lines)
}

// cutText shortens a text to maxMessage bytes.
func cutText(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage] + "…"
	}
	return text
}

// Report reports the task's progress. The newest report is sent with the next heartbeat.
func (t *Task) Report(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = &p
}

// hurry makes the next heartbeat be sent at once. The caller holds mu.
func (t *Task) hurry() {
	select {
	case t.much <- struct{}{}:
	default:
	}
}

// news is the body of a heartbeat.
type news struct {
	Progress *Progress `json:"progress,omitempty"`
	Lines    []logLine `json:"logs,omitempty"`
}

// tell removes and returns what the next heartbeat carries; more says that there is more than that.
func (t *Task) tell() (n news, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fit := t.fits()
	n = news{t.progress, t.lines[:fit:fit]}
	t.lines, t.progress = t.lines[fit:], nil
	return n, len(t.lines) > 0
}

// untold puts back what a failed heartbeat carried.
func (t *Task) untold(n news) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(n.Lines, t.lines...)
	t.progress = cmp.Or(t.progress, n.Progress)
}

func (t *Task) silent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lines) == 0 && t.progress == nil
}

// isLoud reports whether there is more to tell than may wait.
func (t *Task) isLoud() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fits() < len(t.lines) || len(t.lines) >= linesAtOnce
}

// wakes sets the channel that is told when there is much to tell.
func (t *Task) wakes(much chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.much = much
}
