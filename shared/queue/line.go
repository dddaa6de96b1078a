package queue

import (
	"cmp"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
)

// line names a ready index: of a queue's tasks that servers run, of those of one job that instances run, since each instance runs
// some jobs only, or of those of that job that are kept for the instances of one name.
type line struct {
	queue string
	job   string // path; empty: servers run them
	name  string // of instances; empty: they are for all
}

// lineOf returns the line that a task of a job waits in.
func lineOf(queue string, job definition.Job, declared bool) line {
	if declared && !job.Target.OnInstance() {
		return line{queue: queue}
	}
	return line{queue: queue, job: job.Path}
}

// parseLine returns the line whose String is text.
func parseLine(text string) line {
	at := strings.Index(text, "@/") // no name has a slash, and every path begins with one
	if at < 0 {
		return line{queue: text}
	}
	l := line{queue: text[:at]}
	l.job, l.name, _ = strings.Cut(text[at+1:], "\n") // no path has a control character
	return l
}

// String returns the line as keys, items and notifications spell it.
func (l line) String() string {
	switch {
	case l.job == "":
		return l.queue
	case l.name == "":
		return l.queue + "@" + l.job
	default:
		return l.queue + "@" + l.job + "\n" + l.name
	}
}

// MarshalText returns what String returns.
func (l line) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText sets the line to what parseLine returns.
func (l *line) UnmarshalText(text []byte) error {
	*l = parseLine(string(text))
	return nil
}

// forInstances reports whether instances take from the line.
func (l line) forInstances() bool { return l.job != "" }

// keptFor returns the line for those of its tasks that are kept for instances of a name; "" is none.
func (l line) keptFor(name string) line {
	l.name = name
	return l
}

func (l line) notice() notifier.Notice { return notifier.Notice{Queue: l.String()} }

func compareLines(a, b line) int {
	return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.job, b.job), cmp.Compare(a.name, b.name))
}
