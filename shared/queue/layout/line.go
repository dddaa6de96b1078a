package layout

import (
	"cmp"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
)

// Line names a ready index: of a queue's tasks that servers run, of those of one job that instances run, since each instance runs
// some jobs only, or of those of that job that are kept for the instances of one name.
type Line struct {
	Queue string
	Job   string // path; empty: servers run them
	Name  string // of instances; empty: they are for all
}

// LineOf returns the line that a task of a job waits in.
func LineOf(queue string, job definition.Job, declared bool) Line {
	if declared && !job.Target.OnInstance() {
		return Line{Queue: queue}
	}
	return Line{Queue: queue, Job: job.Path}
}

// ParseLine returns the line whose String is text.
func ParseLine(text string) Line {
	at := strings.Index(text, "@/") // no name has a slash, and every path begins with one
	if at < 0 {
		return Line{Queue: text}
	}
	l := Line{Queue: text[:at]}
	l.Job, l.Name, _ = strings.Cut(text[at+1:], "\n") // no path has a control character
	return l
}

// String returns the line as keys, items and notifications spell it.
func (l Line) String() string {
	switch {
	case l.Job == "":
		return l.Queue
	case l.Name == "":
		return l.Queue + "@" + l.Job
	default:
		return l.Queue + "@" + l.Job + "\n" + l.Name
	}
}

// MarshalText returns what String returns.
func (l Line) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText sets the line to what [ParseLine] returns.
func (l *Line) UnmarshalText(text []byte) error {
	*l = ParseLine(string(text))
	return nil
}

// ForInstances reports whether instances take from the line.
func (l Line) ForInstances() bool { return l.Job != "" }

// KeptFor returns the line for those of its tasks that are kept for instances of a name; "" is none.
func (l Line) KeptFor(name string) Line {
	l.Name = name
	return l
}

// Notice returns a notification of a task that is ready in the line.
func (l Line) Notice() notifier.Notice { return notifier.Notice{Queue: l.String()} }

// CompareLines compares two lines by queue, job and name.
func CompareLines(a, b Line) int {
	return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Name, b.Name))
}

// HomeOf returns the line in which a task of a job waits, and the job. Tasks of a job that is not declared wait for instances.
func HomeOf(set *definition.Set, queue, path string) (l Line, job definition.Job, declared bool) {
	job, declared = set.JobOf(path)
	job.Path = path
	return LineOf(queue, job, declared), job, declared
}
