package queue

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store/memory"
)

// crowded returns the waits of many instances, each with patterns of its own, and the lines of many jobs.
func crowded(t testing.TB, instances, jobs int) (*Queue, []*Waiting, []layout.Line) {
	t.Helper()
	q := Open(Options{Store: memory.New(memory.Options{})})
	waits := make([]*Waiting, instances)
	for i := range waits {
		waits[i] = q.Wait(Claimer{Instance: fmt.Sprint("i/", i), Jobs: []string{
			fmt.Sprintf("/topics/a%d/*", i%10), "/topics/b/**", fmt.Sprintf("/topics/c%d", i),
		}})
	}
	lines := make([]layout.Line, jobs)
	for i := range lines {
		lines[i] = layout.ParseLine(fmt.Sprintf("main@/topics/a%d/job%d", i%20, i)) // nobody runs each second one
	}
	return q, waits, lines
}

// TestEachWaitIsAskedOnceForEachLine: what is remembered of who takes from a line stays true while waits come and go.
func TestEachWaitIsAskedOnceForEachLine(t *testing.T) {
	t.Parallel()
	q, waits, lines := crowded(t, 30, 40)
	check := func(when string) {
		t.Helper()
		for _, line := range lines {
			want := false
			for _, w := range q.waiters.all {
				want = want || w.by.takes(line)
			}
			if got := q.waiters.take(line); got != want {
				t.Errorf("%s: take(%s) = %t, want %t", when, line, got, want)
			}
		}
	}
	check("at first")
	for i, w := range waits {
		if i%10 != 3 {
			w.End()
		}
		if i%7 == 0 {
			check("after some have left")
		}
	}
	late := q.Wait(Claimer{Instance: "late", Jobs: []string{"/topics/**"}})
	check("with one that takes all")
	q.waiters.wake(lines[3])
	if late.woken || !waits[3].woken || waits[3].line != lines[3] {
		t.Errorf("wake: not the one that has waited longest")
	}
	q.waiters.wake(lines[11])
	if late.line != lines[11] {
		t.Errorf("wake(%s) did not wake the only one that takes from it", lines[11])
	}
	check("after two were woken")
}

// BenchmarkLook is what a second costs in which nothing has changed: 400 lines, 1,000 waits.
func BenchmarkLook(b *testing.B) {
	q, _, lines := crowded(b, 1000, 400)
	for b.Loop() {
		for _, line := range lines {
			q.waiters.take(line)
		}
	}
}
