package tasklog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

const (
	// MaxLog is how many bytes of log a task keeps of each attempt, see [Line.Size]; a last line says that the log was cut off.
	MaxLog = 16 << 20

	maxChunk = 200 << 10 // bytes of one item
	maxLine  = 64 << 10  // bytes of one message within an item; a longer one is cut and marked so
)

// Line is one line of a task's log.
type Line struct {
	Time    time.Time `json:"time"`    // zero: when the line is stored
	Level   string    `json:"level"`   // info, error, warn or debug; empty: info
	Message string    `json:"message"` // at most 64 KiB as it is stored; a longer one is cut
}

// Query selects lines of a task's log.
type Query struct {
	From, To time.Time // the lines' times, both inclusive; zero: open
	After    string    // Cursor of an earlier page; empty: from the beginning
	Limit    int       // lines of a page; 0: all
}

// Page is a page of lines in their order.
type Page struct {
	Lines  []Line
	Cursor string // the place behind the last line that was read
	More   bool   // more lines exist already
	Done   bool   // the task is finished, and no line follows
}

// logged is a line as it is stored.
type logged struct {
	At      int64  `json:"t"`
	Level   string `json:"l"`
	Message string `json:"m"`
}

// lineCost is about how many bytes a line takes besides its message.
const lineCost = 40

// Size returns how many bytes a line counts in [MaxLog]: its message as it is stored, and 40 bytes.
func (l *Line) Size() int { return event.TextSize(l.Message) + lineCost }

// Append returns the operations that append lines. The lease's version numbers the chunks, so that they are in the order in which
// the worker sent them, whichever process receives them. The task's version tells apart runs that have the same number: an attempt
// that was given back is run again.
func Append(h *layout.Held, next *layout.Lease, lines []Line, now time.Time) ([]store.Op, error) {
	if len(lines) == 0 || next.Logged >= MaxLog {
		return nil, nil
	}
	var ops []store.Op
	var chunk []byte
	flush := func() {
		sort := fmt.Sprintf("%08x-%012x-%012x-%03x", h.Task.Attempt, h.TaskVersion, h.Version+1, len(ops))
		item := store.Item{Key: layout.Key(layout.LogPartition(h.UUID), sort), Version: 1, Value: append(chunk, ']')}
		ops, chunk = append(ops, store.Put(item, store.Always)), nil
	}
	size := 0
	for _, line := range lines {
		if next.Logged >= MaxLog {
			break
		}
		kept := logLine(line, now)
		if next.Logged += event.TextSize(kept.Message) + lineCost; next.Logged >= MaxLog {
			kept.Level, kept.Message = "warn", fmt.Sprintf("the log is cut off here: it has reached %d MiB", MaxLog>>20)
		}
		l := layout.Encode(kept)
		if size += len(l); size > layout.MaxTogether {
			return nil, fmt.Errorf("%w: logs: more than %d bytes as they are stored; send fewer lines at once", layout.ErrTooLarge, layout.MaxTogether)
		}
		if len(chunk) > 0 && len(chunk)+len(l) > maxChunk {
			flush()
		}
		if len(chunk) == 0 {
			chunk = append(chunk, '[')
		} else {
			chunk = append(chunk, ',')
		}
		chunk = append(chunk, l...)
	}
	flush()
	return ops, nil
}

// logLine returns a line as it is stored.
func logLine(line Line, now time.Time) logged {
	at := line.Time
	if at.IsZero() {
		at = now
	}
	message := event.CutText(strings.ToValidUTF8(line.Message, "\uFFFD"), maxLine, "… (cut)")
	return logged{At: at.UnixMicro(), Level: cmp.Or(line.Level, "info"), Message: message}
}

// Read returns lines of a task's log, in their order. The task was read before, so that no line follows if it is finished.
func Read(ctx context.Context, s store.Store, t *task.Task, l Query) (Page, error) {
	sort, skip, err := parseLogCursor(l.After)
	if err != nil {
		return Page{}, err
	}
	page := Page{Cursor: l.After}
	r := store.Range{Table: store.Work, Partition: layout.LogPartition(t.ID.UUID()), From: sort}
	for item, err := range store.All(ctx, s, r) {
		if err != nil {
			return Page{}, layout.Failure("read a log", err)
		}
		if item.Key.Sort != sort {
			skip = 0
		}
		full, err := page.take(item, skip, &l)
		if err != nil || full {
			return page, err
		}
	}
	page.Done = t.State.Final()
	return page, nil
}

// take adds a chunk's lines from index skip on; full says that the limit is reached.
func (p *Page) take(item *store.Item, skip int, l *Query) (full bool, err error) {
	var chunk []logged
	if err := json.Unmarshal(item.Value, &chunk); err != nil {
		return false, fmt.Errorf("queue: log of %s: %w", item.Key.Partition, err)
	}
	for n := skip; n < len(chunk); n++ {
		at := time.UnixMicro(chunk[n].At).UTC()
		if (l.From.IsZero() || !at.Before(l.From)) && (l.To.IsZero() || !at.After(l.To)) {
			if l.Limit > 0 && len(p.Lines) == l.Limit {
				p.More = true
				return true, nil
			}
			p.Lines = append(p.Lines, Line{Time: at, Level: chunk[n].Level, Message: chunk[n].Message})
		}
		p.Cursor = fmt.Sprintf("%s.%d", item.Key.Sort, n+1)
	}
	return false, nil
}

// parseLogCursor returns the sort key of the chunk to begin with, and how many of its lines to skip.
func parseLogCursor(cursor string) (sort string, skip int, err error) {
	if cursor == "" {
		return "", 0, nil
	}
	sort, number, ok := strings.Cut(cursor, ".")
	if _, err := fmt.Sscanf(number, "%d", &skip); !ok || err != nil || skip < 0 {
		return "", 0, fmt.Errorf("%w: log cursor %q", layout.ErrInvalid, cursor)
	}
	return sort, skip, nil
}

// Drop removes the log of a task that is gone. An error may leave a part of it.
func Drop(ctx context.Context, s store.Store, uuid string) error {
	return layout.Failure("remove a log", s.Remove(ctx, store.Range{Table: store.Work, Partition: layout.LogPartition(uuid)}))
}

// End returns the operation that writes a line behind all that an attempt has logged. It is for the write that ends the attempt.
func End(uuid string, attempt int, line Line, now time.Time) store.Op {
	return store.Put(behind(uuid, attempt, "ffe", line, now), store.Always)
}

// Note returns the operation that writes a line behind that of [End], once.
func Note(uuid string, attempt int, line Line, now time.Time) store.Op {
	return store.Put(behind(uuid, attempt, "fff", line, now), store.Absent)
}

// behind returns the item of a line after all that an attempt has logged; place is among such lines.
func behind(uuid string, attempt int, place string, line Line, now time.Time) store.Item {
	sort := fmt.Sprintf("%08x-%s-%s", attempt, "ffffffffffff", place)
	return store.Item{Key: layout.Key(layout.LogPartition(uuid), sort), Version: 1, Value: layout.Encode([]logged{logLine(line, now)})}
}
