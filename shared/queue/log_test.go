package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
)

// logged is a task that runs and has written n lines, a millisecond apart, in lots.
func (b *bench) logged(n, lot int) queue.Lease {
	b.t.Helper()
	b.one(queue.New{Job: "/plain"})
	l := b.claim(1)[0]
	for from := 0; from < n; from += lot {
		var lines []tasklog.Line
		for i := from; i < min(from+lot, n); i++ {
			level := "info"
			if i%2 == 1 {
				level = "error" // the other stream
			}
			lines = append(lines, tasklog.Line{Time: b.clock.now().Add(time.Duration(i) * time.Millisecond), Level: level, Message: fmt.Sprint(i)})
		}
		if err := b.AppendLog(b.t.Context(), l.Token, lines); err != nil {
			b.t.Fatal(err)
		}
	}
	return l
}

func (b *bench) logs(l queue.Lease, query tasklog.Query) tasklog.Page {
	b.t.Helper()
	page, err := b.Logs(b.t.Context(), l.Task.ID, query)
	if err != nil {
		b.t.Fatal(err)
	}
	return page
}

func TestAllLinesOfALogComeInTheirOrder(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		const n = 50_000
		l := b.logged(n, 700)
		query := tasklog.Query{Limit: 999}
		for next := 0; ; {
			page := b.logs(l, query)
			for _, line := range page.Lines {
				if line.Message != fmt.Sprint(next) || (line.Level == "error") != (next%2 == 1) {
					t.Fatalf("line %d is %q of level %s", next, line.Message, line.Level)
				}
				next++
			}
			if query.After = page.Cursor; !page.More {
				if next != n {
					t.Fatalf("%d lines were answered, want %d", next, n)
				}
				break
			}
		}
		if page := b.logs(l, query); len(page.Lines) > 0 || page.Done {
			t.Errorf("at the end of a running task's log: %d lines, done %v", len(page.Lines), page.Done)
		}
		if err := b.AppendLog(t.Context(), l.Token, []tasklog.Line{{Message: "more"}}); err != nil {
			t.Fatal(err)
		}
		b.complete(l, queue.Result{Outcome: queue.OK})
		if page := b.logs(l, query); len(page.Lines) != 1 || page.Lines[0].Message != "more" || !page.Done {
			t.Errorf("after the end: %+v, want the one line that came, and done", page)
		}
	})
}

func TestALogIsSelectedByTimeBothEndsIncluded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.logged(100, 7)
	at := func(i int) time.Time { return b.clock.now().Add(time.Duration(i) * time.Millisecond) }
	for _, test := range []struct {
		query       tasklog.Query
		first, last int
	}{
		{tasklog.Query{From: at(90)}, 90, 99},
		{tasklog.Query{To: at(10)}, 0, 10},
		{tasklog.Query{From: at(20), To: at(20)}, 20, 20},
	} {
		lines := b.logs(l, test.query).Lines
		if len(lines) != test.last-test.first+1 || lines[0].Message != fmt.Sprint(test.first) {
			t.Errorf("%+v answers %d lines, want %d to %d", test.query, len(lines), test.first, test.last)
		}
	}
}

func TestALogThatIsTooLongIsCutOffVisibly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.one(queue.New{Job: "/plain"})
	l := b.claim(1)[0]
	line := tasklog.Line{Message: strings.Repeat("x", 60<<10)}
	for range tasklog.MaxLog/(60<<10)/20 + 2 {
		var lines []tasklog.Line
		for range 20 {
			lines = append(lines, line)
		}
		if err := b.AppendLog(t.Context(), l.Token, lines); err != nil {
			t.Fatal(err)
		}
	}
	lines := b.logs(l, tasklog.Query{}).Lines
	last, size := lines[len(lines)-1], 0
	for _, line := range lines {
		size += len(line.Message)
	}
	if size > tasklog.MaxLog || last.Level != "warn" || !strings.HasPrefix(last.Message, "the log is cut off here") {
		t.Errorf("%d bytes are kept, and the last line is %.40q of level %s", size, last.Message, last.Level)
	}
}

// An attempt that is given back is run again under its number; what each run has logged is kept, in order.
func TestAnAttemptThatRunsTwiceKeepsBothLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.one(queue.New{Job: "/plain"})
	var l queue.Lease
	for run := range 3 {
		l = b.claim(1)[0]
		if l.Task.Attempt != 1 {
			t.Fatalf("run %d is attempt %d, want 1", run, l.Task.Attempt)
		}
		for part := range 2 {
			if err := b.AppendLog(t.Context(), l.Token, []tasklog.Line{{Message: fmt.Sprint(run, part)}}); err != nil {
				t.Fatal(err)
			}
		}
		b.complete(l, queue.Result{Outcome: queue.Again})
	}
	var got []string
	for _, line := range b.logs(l, tasklog.Query{}).Lines {
		got = append(got, line.Message)
	}
	if diff := cmp.Diff([]string{"0 0", "0 1", "1 0", "1 1", "2 0", "2 1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestALogCursorThatWasNeverGivenIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := b.logged(1, 1)
	for _, cursor := range []string{"x", "1.-1", "1.x"} {
		if _, err := b.Logs(t.Context(), l.Task.ID, tasklog.Query{After: cursor}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("cursor %q: %v, want %v", cursor, err, queue.ErrInvalid)
		}
	}
}
