package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

const (
	// MaxLog is how many bytes of log a task keeps in each attempt; a last line says that there was more.
	MaxLog = 16 << 20

	maxChunk = 200 << 10 // bytes of one item
	maxLine  = 64 << 10  // bytes of one message
)

// logged is a line as it is stored.
type logged struct {
	At      int64  `json:"t"`
	Level   string `json:"l"`
	Message string `json:"m"`
}

// logOps are the operations that append lines. The lease's version numbers the chunks, so that they stand in the order in
// which the worker sent them, whoever took them.
func (q *Queue) logOps(h *heldLease, next *lease, lines []Line) []store.Op {
	if len(lines) == 0 || next.Logged >= MaxLog {
		return nil
	}
	var ops []store.Op
	var chunk []logged
	size := 0
	flush := func() {
		if len(chunk) == 0 {
			return
		}
		sort := fmt.Sprintf("%08x-%012x-%03x", h.task.Attempt, h.version+1, len(ops))
		ops = append(ops, store.Put(store.Item{Key: work(logPartition(h.UUID), sort), Version: 1, Value: encode(chunk)}, store.Always))
		chunk, size = nil, 0
	}
	for _, line := range lines {
		l := q.logLine(line)
		if next.Logged += len(l.Message) + 40; next.Logged >= MaxLog {
			l = logged{At: l.At, Level: "warn", Message: fmt.Sprintf("the log is cut off here: it has reached %d MiB", MaxLog>>20)}
		}
		if size += len(l.Message) + 40; size > maxChunk {
			flush()
			size = len(l.Message) + 40
		}
		if chunk = append(chunk, l); next.Logged >= MaxLog {
			break
		}
	}
	flush()
	return ops
}

func (q *Queue) logLine(line Line) logged {
	at := line.Time
	if at.IsZero() {
		at = q.now()
	}
	message := strings.ToValidUTF8(line.Message, "\uFFFD")
	if len(message) > maxLine {
		message = strings.ToValidUTF8(message[:maxLine], "") + "… (cut)"
	}
	level := line.Level
	if level == "" {
		level = "info"
	}
	return logged{At: at.UnixMicro(), Level: level, Message: message}
}

// Logs answers lines of a task's log, in their order.
func (q *Queue) Logs(ctx context.Context, id task.ID, l LogQuery) (LogPage, error) {
	t, _, err := q.load(ctx, id.UUID())
	if err != nil {
		return LogPage{}, err
	}
	sort, skip, err := parseLogCursor(l.After)
	if err != nil {
		return LogPage{}, err
	}
	page := LogPage{Cursor: l.After}
	r := store.Range{Table: store.Work, Partition: logPartition(id.UUID()), From: sort}
	for item, err := range store.All(ctx, q.store, r) {
		if err != nil {
			return LogPage{}, unavailable("read a log", err)
		}
		if item.Key.Sort != sort {
			skip = 0
		}
		full, err := page.take(item, skip, &l)
		if err != nil || full {
			return page, err
		}
	}
	page.Done = t.State.Final() // read before the lines, so that none can follow
	return page, nil
}

// take adds a chunk's lines from index skip; full says that the limit is reached.
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

// parseLogCursor answers the chunk to begin with and how many of its lines were read.
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
