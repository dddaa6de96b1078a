package worker

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
)

const (
	maxLine  = 32 << 10 // bytes of one line as it is stored; what is longer is cut, visibly
	cutMark  = "… (cut: the line is longer than 32 KiB)"
	logChunk = 32 << 10               // bytes that are worth a request
	logDelay = 500 * time.Millisecond // how long a line waits for others
	logAhead = 256 << 10              // bytes that wait; a writer of more waits for the engine
	logBatch = 128 << 10              // bytes of one request at most: one item of the store

	// maxLog is below the engine's limit by enough for the line that says what was left out.
	maxLog = tasklog.MaxLog - 4<<10
)

// Log takes the lines of a running attempt and appends them by the engine in the order in which they were written, in chunks,
// within half a second if the engine keeps up. Its methods may be called concurrently. Lines after the attempt's end are not
// kept.
type Log struct {
	hold *hold
	max  int

	mu       sync.Mutex
	changed  *sync.Cond // fewer bytes wait, or the log is closed or dead
	lines    []tasklog.Line
	size     int           // bytes that wait
	total    int           // bytes taken
	left     int           // lines left out
	leftSize int           // their bytes
	timer    *time.Timer   // of the oldest line that waits; nil until the first, as are the channels
	wake     chan struct{} // enough waits, or the log is closed
	sent     chan struct{} // closed when all lines were appended
	closed   bool
	dead     bool   // the lease is over: lines are not kept
	fault    string // the newest line of level error
}

func newLog(h *hold, limit int) *Log { return &Log{hold: h, max: limit} }

// Info adds a line of level info, formatted as by fmt.Sprintf.
func (l *Log) Info(format string, args ...any) { l.Line("info", fmt.Sprintf(format, args...)) }

// Error adds a line of level error, formatted as by fmt.Sprintf.
func (l *Log) Error(format string, args ...any) { l.Line("error", fmt.Sprintf(format, args...)) }

// Line adds a line of a level: debug, info, warn or error. A message over 32 KiB as it is stored is cut, and bytes that are not
// UTF-8 are replaced. Line waits while more than 256 KiB wait for the engine. Beyond [Options].MaxLog lines are left out; a last
// line of level warn says how many.
func (l *Log) Line(level, message string) {
	line := tasklog.Line{Time: time.Now(), Level: level, Message: tidy(message)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = sync.NewCond(&l.mu)
	}
	if level == "error" {
		l.fault = line.Message
	}
	cost := line.Size()
	for l.size > 0 && l.size+cost > logAhead && !l.closed && !l.dead {
		l.changed.Wait()
	}
	switch {
	case l.closed || l.dead:
	case l.left > 0 || l.total+cost > l.max:
		l.left++
		l.leftSize += len(line.Message)
	default:
		l.add(line, cost)
	}
}

// add adds a line; the caller holds the lock.
func (l *Log) add(line tasklog.Line, cost int) {
	if l.sent == nil {
		l.wake, l.sent, l.timer = make(chan struct{}, 1), make(chan struct{}), time.NewTimer(logDelay)
		go l.carry()
	}
	if len(l.lines) == 0 {
		l.timer.Reset(logDelay)
	}
	l.lines = append(l.lines, line)
	l.total += cost
	if l.size += cost; l.size >= logChunk {
		l.nudge()
	}
}

func (l *Log) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// carry appends lines by the engine until the log is closed.
func (l *Log) carry() {
	defer close(l.sent)
	defer l.timer.Stop()
	for !l.over() {
		select {
		case <-l.timer.C:
		case <-l.wake:
		}
		for l.carryChunk() {
		}
	}
}

// carryChunk appends the lines that wait, and reports whether more are worth a request.
func (l *Log) carryChunk() bool {
	lines := l.take()
	if len(lines) == 0 {
		return false
	}
	err := l.hold.appendLog(lines)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.dead = true
		l.changed.Broadcast()
	}
	return !l.dead && (l.closed || l.size >= logChunk)
}

// take returns lines for one request.
func (l *Log) take() []tasklog.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for n < len(l.lines) && (n == 0 || size+l.lines[n].Size() <= logBatch) {
		size += l.lines[n].Size()
		n++
	}
	lines := l.lines[:n:n]
	l.lines = l.lines[n:]
	l.size -= size
	l.changed.Broadcast()
	return lines
}

func (l *Log) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead || l.closed && len(l.lines) == 0
}

// explain adds a line with the message of a failed attempt, unless the newest line of level error says it.
func (l *Log) explain(r *queue.Result) {
	switch r.Outcome {
	case queue.OK, queue.Again, Later:
		return
	}
	l.mu.Lock()
	said := strings.HasPrefix(l.fault, r.Message)
	l.mu.Unlock()
	if !said {
		l.Error("%s", r.Message)
	}
}

// close ends the log, and returns when all lines were appended or the lease is over.
func (l *Log) close() {
	l.mu.Lock()
	if l.left > 0 && !l.dead {
		l.lines = append(l.lines, tasklog.Line{Time: time.Now(), Level: "warn", Message: fmt.Sprintf(
			"the log is full: %d more lines of %d bytes were left out", l.left, l.leftSize)})
	}
	l.closed = true
	sent := l.sent
	if sent != nil {
		l.changed.Broadcast()
		l.nudge()
	}
	l.mu.Unlock()
	if sent != nil {
		<-sent
	}
}

// tidy returns a message as valid UTF-8 of at most maxLine bytes as stored.
func tidy(message string) string {
	return event.CutText(strings.ToValidUTF8(message, string(utf8.RuneError)), maxLine, cutMark)
}

// cutText removes the incomplete character that a cut may have left at the end.
func cutText(text string) string {
	for n := 0; n < utf8.UTFMax && n < len(text); n++ {
		if last, size := utf8.DecodeLastRuneInString(text[:len(text)-n]); last != utf8.RuneError || size != 1 {
			return text[:len(text)-n]
		}
	}
	return text
}
