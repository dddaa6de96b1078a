package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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

// logged is a line as it is stored.
type logged struct {
	At      int64  `json:"t"`
	Level   string `json:"l"`
	Message string `json:"m"`
}

// lineCost is about how many bytes a line takes besides its message.
const lineCost = 40

// Size returns how many bytes a line counts in [MaxLog]: its message as it is stored, and 40 bytes.
func (l *Line) Size() int { return TextSize(l.Message) + lineCost }

// logOps returns the operations that append lines. The lease's version numbers the chunks, so that they are in the order in which
// the worker sent them, whichever process receives them. The task's version tells apart runs that have the same number: an attempt
// that was given back is run again.
func (q *Queue) logOps(h *layout.Held, next *layout.Lease, lines []Line) ([]store.Op, error) {
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
		kept := q.logLine(line)
		if next.Logged += TextSize(kept.Message) + lineCost; next.Logged >= MaxLog {
			kept.Level, kept.Message = "warn", fmt.Sprintf("the log is cut off here: it has reached %d MiB", MaxLog>>20)
		}
		l := layout.Encode(kept)
		if size += len(l); size > MaxTogether {
			return nil, fmt.Errorf("%w: logs: more than %d bytes as they are stored; send fewer lines at once", ErrTooLarge, MaxTogether)
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
func (q *Queue) logLine(line Line) logged {
	at := line.Time
	if at.IsZero() {
		at = q.now()
	}
	message := CutText(strings.ToValidUTF8(line.Message, "\uFFFD"), maxLine, "… (cut)")
	return logged{At: at.UnixMicro(), Level: cmp.Or(line.Level, "info"), Message: message}
}

// Logs returns lines of a task's log, in their order. The error is [ErrNoTask] if there is no such task.
func (q *Queue) Logs(ctx context.Context, id task.ID, l LogQuery) (LogPage, error) {
	t, _, err := layout.LoadTask(ctx, q.store, id.UUID())
	if err != nil {
		return LogPage{}, err
	}
	sort, skip, err := parseLogCursor(l.After)
	if err != nil {
		return LogPage{}, err
	}
	page := LogPage{Cursor: l.After}
	r := store.Range{Table: store.Work, Partition: layout.LogPartition(id.UUID()), From: sort}
	for item, err := range store.All(ctx, q.store, r) {
		if err != nil {
			return LogPage{}, layout.Failure("read a log", err)
		}
		if item.Key.Sort != sort {
			skip = 0
		}
		full, err := page.take(item, skip, &l)
		if err != nil || full {
			return page, err
		}
	}
	page.Done = t.State.Final() // the state was read before the lines, so that none can follow
	return page, nil
}

// take adds a chunk's lines from index skip on; full says that the limit is reached.
func (p *LogPage) take(item *store.Item, skip int, l *LogQuery) (full bool, err error) {
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
		return "", 0, fmt.Errorf("%w: log cursor %q", ErrInvalid, cursor)
	}
	return sort, skip, nil
}

// dropLog removes the log of a task that is gone. An error may leave a part of it.
func (q *Queue) dropLog(ctx context.Context, uuid string) error {
	return layout.Failure("remove a log", q.store.Remove(ctx, store.Range{Table: store.Work, Partition: layout.LogPartition(uuid)}))
}
