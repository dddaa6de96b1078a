package queue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// air is what several processes broadcast over.
type air struct {
	mu   sync.Mutex
	all  []*radio
	sent int // broadcasts
}

// radio is one process's notifier.
type radio struct {
	notifier.Notifier
	air  *air
	hear func([]notifier.Notice)
}

func (r *radio) Hear(f func([]notifier.Notice)) {
	r.air.mu.Lock()
	defer r.air.mu.Unlock()
	r.hear, r.air.all = f, append(r.air.all, r)
}

func (r *radio) Broadcast(_ context.Context, notices ...notifier.Notice) error {
	r.air.mu.Lock()
	defer r.air.mu.Unlock()
	r.air.sent++
	for _, other := range r.air.all {
		if other != r {
			other.hear(notices)
		}
	}
	return nil
}

// processes opens two processes that share a store.
func processes(t *testing.T, over *air) (here, there *bench) {
	t.Helper()
	s := shared{memory.New(memory.Options{})}
	open := func() *bench {
		b := &bench{t: t, store: s, journal: journal.Open(s, journal.Options{Folds: projection.Folds()})}
		b.Queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: fixed{&definition.Set{}}, Notifier: &radio{air: over}})
		t.Cleanup(func() {
			_ = b.Close()
			_ = b.journal.Close()
		})
		return b
	}
	return open(), open()
}

// TestAnInstanceThatWaitsElsewhereIsTold: an instance that waits in one process is woken at once for a task that another adds, without a
// look at the store; and what becomes ready shortly after is told of together.
func TestAnInstanceThatWaitsElsewhereIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var over air
		here, there := processes(t, &over)
		wait := func(b *bench) *queue.Waiting {
			return b.Wait(queue.Claimer{Instance: "w/1", Name: "w", Jobs: []string{"/topics/**"}})
		}
		add := func() {
			here.enqueue(queue.New{Dialect: task.Job, Job: "/topics/a"})
			synctest.Wait()
		}
		woken := func(w *queue.Waiting) bool {
			select {
			case <-w.Ready():
				return true
			default:
				return false
			}
		}

		there.byInstance(1) // it reads which lines there are
		waits := []*queue.Waiting{wait(there), wait(there), wait(there)}
		add()
		if !woken(waits[0]) || woken(waits[1]) {
			t.Errorf("after one task the first that waits is woken: %t, and the second: %t", woken(waits[0]), woken(waits[1]))
		}
		add()
		add()
		if woken(waits[1]) {
			t.Error("the others are told of each task by itself, want together")
		}
		time.Sleep(100 * time.Millisecond)
		if !woken(waits[1]) || !woken(waits[2]) || over.sent != 2 {
			t.Errorf("the second that waits is woken: %t, the third: %t, by %d broadcasts, want both by 2", woken(waits[1]), woken(waits[2]), over.sent)
		}
		for _, w := range waits {
			w.Looks()
			if len(there.byInstance(1)) != 1 {
				t.Error("one that was woken finds no task, of a line that was not there when its process looked")
			}
		}

		// Where one waits, nobody else is told.
		time.Sleep(100 * time.Millisecond)
		over.sent = 0
		own, other := wait(here), wait(there)
		add()
		if !woken(own) || woken(other) || over.sent != 0 {
			t.Errorf("the one that waits here is woken: %t, the one elsewhere: %t, by %d broadcasts, want 0", woken(own), woken(other), over.sent)
		}
		own.Looks()
		other.End()
	})
}
