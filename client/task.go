package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// Why a task's context ended.
var (
	// ErrStopped says that somebody asked for the task to be stopped. Any error is the answer.
	ErrStopped = errors.New("client: the task is to be stopped")

	// ErrLost says that the lease is over, since the server says so or could not be reached for its length: the task may run
	// elsewhere, and what this worker makes of it is not reported.
	ErrLost = errors.New("client: the task's lease is over")

	// ErrDrained says that the worker ends, and has waited long enough.
	ErrDrained = errors.New("client: the worker ends")
)

// rejection is an error after which a task is not tried again.
type rejection struct{ error }

func (r rejection) Unwrap() error { return r.error }

// Reject wraps an error after which the task is not to be tried again, whatever attempts are left.
func Reject(err error) error { return rejection{err} }

// delayed is an error after which the next attempt waits.
type delayed struct {
	error
	by time.Duration
}

func (d delayed) Unwrap() error { return d.error }

// RetryAfter wraps an error after which the next attempt waits so long, instead of what the job says.
func RetryAfter(by time.Duration, err error) error { return delayed{err, by} }

// Task is an attempt at a task that a [Worker] runs. Its methods may be called concurrently.
type Task struct {
	ID      string
	Job     string // path
	Attempt int    // from 1
	Payload json.RawMessage

	mu       sync.Mutex
	lines    []logLine
	progress *Progress
	much     chan struct{} // with room for one: there is much to tell
}

type logLine struct {
	Time    Time   `json:"time"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

// Progress is how far a task is.
type Progress struct {
	Step    int    `json:"step"`
	Steps   int    `json:"steps"`
	ETA     Time   `json:"eta,omitzero"`
	Message string `json:"message,omitempty"`
}

// What one heartbeat carries, well below the megabyte that a request may have; so much is sent without waiting for its time.
const (
	linesAtOnce = 500
	bytesAtOnce = 128 << 10
	maxMessage  = 32 << 10 // of one line; the rest is cut off
)

// Log adds a line to the task's log; level is debug, info, warn or error. It is sent with the next heartbeat.
func (t *Task) Log(level, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, logLine{Time{time.Now().UTC()}, level, cutText(message)})
	if t.fits() < len(t.lines) || len(t.lines) == linesAtOnce {
		t.hurry()
	}
}

// fits answers how many lines go with the next heartbeat. The caller holds mu.
func (t *Task) fits() int {
	bytes := 0
	for n := range t.lines {
		if bytes += len(t.lines[n].Message); n > 0 && bytes > bytesAtOnce || n == linesAtOnce {
			return n
		}
	}
	return len(t.lines)
}

// cutText shortens what would not fit in a request with its neighbours.
func cutText(text string) string {
	if len(text) > maxMessage {
		return text[:maxMessage] + "…"
	}
	return text
}

// Report says how far the task is. It is sent with the next heartbeat, the newest only.
func (t *Task) Report(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = &p
}

// hurry has the heartbeat come now. The caller holds mu.
func (t *Task) hurry() {
	select {
	case t.much <- struct{}{}:
	default:
	}
}

// news is what one heartbeat tells.
type news struct {
	Progress *Progress `json:"progress,omitempty"`
	Lines    []logLine `json:"logs,omitempty"`
}

// tell takes what there is to tell; more says that there is more than one heartbeat carries.
func (t *Task) tell() (n news, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fit := t.fits()
	n = news{t.progress, t.lines[:fit:fit]}
	t.lines, t.progress = t.lines[fit:], nil
	return n, len(t.lines) > 0
}

// untold puts back what a heartbeat could not tell.
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
