package layout

import "github.com/millrace/millrace/shared/task"

// The fields of what is stored in the compact form, with their numbers, which must rise. No number may get another meaning.

func taskFields(t *task.Task, f *form) {
	text(f, 1, &t.ID)
	text(f, 2, &t.Dialect)
	text(f, 3, &t.Job)
	text(f, 4, &t.Group)
	text(f, 5, &t.Queue)
	text(f, 6, &t.State)
	number(f, 7, &t.Priority)
	number(f, 8, &t.Created)
	number(f, 9, &t.NotBefore)
	number(f, 10, &t.Started)
	number(f, 11, &t.Finished)
	number(f, 12, &t.Attempt)
	number(f, 13, &t.Attempts)
	number(f, 14, &t.PutOff)
	number(f, 15, &t.RetryDelay)
	text(f, 16, &t.Thrown)
	text(f, 17, &t.Fairness)
	text(f, 18, &t.Unique)
	number(f, 19, &t.UniqueUntil)
	f.flag(20, &t.Late)
	part(f, 21, &t.Concurrency, concurrencyFields)
	text(f, 22, &t.Prefer)
	text(f, 23, &t.Modifier)
	text(f, 24, &t.Schedule)
	part(f, 25, &t.Order, orderFields)
	text(f, 26, &t.Instance)
	text(f, 27, &t.Lease)
	text(f, 28, &t.Message)
	number(f, 29, &t.Code)
	f.raw(30, &t.Output)
	text(f, 31, &t.Trace)
	f.raw(32, &t.Payload)
	number(f, 33, &t.Apart)
}

// startedFields lists a task that runs: its own fields, and its lease's.
func startedFields(s *Started, f *form) {
	taskFields(&s.Task, f)
	part(f, 40, &s.Given, leaseFields)
}

func concurrencyFields(c *task.Concurrency, f *form) {
	text(f, 1, &c.Key)
	number(f, 2, &c.Limit)
	f.flag(3, &c.Skip)
}

func orderFields(o *task.Order, f *form) {
	text(f, 1, &o.Chain)
	text(f, 2, &o.ID)
	text(f, 3, &o.Node)
	f.flag(4, &o.First)
	number(f, 5, &o.Timeout)
	number(f, 6, &o.Deadline)
}

func entryFields(e *Entry, f *form) {
	text(f, 1, &e.UUID)
	number(f, 2, &e.Of)
	text(f, 3, &e.Job)
	text(f, 4, &e.Queue)
	lineField(f, 5, &e.Where)
	number(f, 6, &e.Priority)
	text(f, 7, &e.Turn)
	text(f, 8, &e.Key)
	number(f, 9, &e.Limit)
	text(f, 10, &e.Late)
	number(f, 11, &e.NotBefore)
	part(f, 12, &e.Taken, takenFields)
	text(f, 13, &e.Prefer)
	number(f, 14, &e.Until)
	text(f, 15, &e.Rank)
}

// lineField lists a line by its name; the zero line has none.
func lineField(f *form, number uint64, l *Line) {
	name := ""
	if !f.reading && *l != (Line{}) {
		name = l.String()
	}
	text(f, number, &name)
	if f.reading && name != "" {
		*l = ParseLine(name)
	}
}

func takenFields(t *Taken, f *form) {
	number(f, 1, &t.Until)
	text(f, 2, &t.To)
}

func leaseFields(l *Lease, f *form) {
	text(f, 1, &l.UUID)
	text(f, 2, &l.Job)
	text(f, 3, &l.Line)
	text(f, 4, &l.Instance)
	number(f, 5, &l.Length)
	number(f, 6, &l.Expires)
	asJSON(f, 7, &l.Slots, len(l.Slots) == 0)
	f.flag(8, &l.Stop)
	text(f, 9, &l.StopBy)
	asJSON(f, 10, &l.Progress, l.Progress == nil)
	number(f, 11, &l.Logged)
	number(f, 12, &l.Beaten)
	number(f, 13, &l.Allowed)
}
