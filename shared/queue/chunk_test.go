package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// mixed returns n tasks of which some have a unique key, some a large payload, and some an instance that they prefer.
func mixed(n int) []queue.New {
	news := make([]queue.New, n)
	for i := range news {
		news[i] = queue.New{Dialect: task.Job, Job: "/plain", Payload: fmt.Appendf(nil, "%d", i)}
		switch i % 5 {
		case 1:
			news[i].Unique = fmt.Sprint(i % 100)
		case 2:
			news[i].Payload = fmt.Appendf(nil, `"%01000d"`, i)
		case 3:
			news[i].Prefer = "i"
		}
	}
	return news
}

func TestManyTasksGoInSeveralWritesInTheirOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		once := &queue.Once{Scope: "s", Key: "k"}
		news := mixed(250)
		first, err := b.Enqueue(t.Context(), once, news...)
		if err != nil {
			t.Fatal(err)
		}
		fresh := 0
		for i, a := range first.Tasks {
			if want := i%5 == 1 && i >= 100; a.Existing != want || want && a.Task.ID != first.Tasks[i%100].Task.ID {
				t.Errorf("task %d: %s, existing %v", i, a.Task.ID, a.Existing)
			}
			if !a.Existing {
				fresh++
			}
		}
		again, err := b.Enqueue(t.Context(), once, news...)
		if err != nil || !again.Replayed {
			t.Fatalf("again: replayed %v, %v", again.Replayed, err)
		}
		for i := range again.Tasks {
			if again.Tasks[i].Task.ID != first.Tasks[i].Task.ID || again.Tasks[i].Existing != first.Tasks[i].Existing {
				t.Errorf("task %d again: %+v", i, again.Tasks[i])
			}
		}
		other := &queue.Once{Scope: "s", Key: "k", Fingerprint: [32]byte{1}}
		if _, err := b.Enqueue(t.Context(), other, mixed(400)...); !errors.Is(err, journal.ErrIdempotencyMismatch) {
			t.Errorf("other tasks with the same key: %v", err)
		}
		if _, err := b.Enqueue(t.Context(), nil, append(mixed(300), queue.New{Job: "x"})...); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("with an invalid one: %v", err)
		}
		if _, err := b.Enqueue(t.Context(), nil, mixed(queue.MaxEnqueue+1)...); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("too many: %v", err)
		}
		all, err := b.List(t.Context(), view.Listing{Group: "/plain", Limit: 1000})
		if err != nil || len(all.Tasks) != fresh {
			t.Errorf("%d tasks, want %d: %v", len(all.Tasks), fresh, err)
		}
	})
}

// failing is a store whose writes fail once so many have been made.
type failing struct {
	shared
	left atomic.Int64
}

var errFailing = errors.New("the disk is full")

func (f *failing) Write(ctx context.Context, w store.Write) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.shared.Write(ctx, w)
}

func TestARepeatedRequestCompletesWhatAnErrorLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{shared: shared{memory.New(memory.Options{})}}
		b := onClock(t, f)
		defer b.journal.Close()
		news := make([]queue.New, 200)
		for i := range news {
			news[i] = queue.New{Dialect: task.Job, Job: "/plain"}
		}
		once := &queue.Once{Scope: "s", Key: "k"}
		for writes := range int64(5) {
			f.left.Store(writes)
			if _, err := b.Enqueue(t.Context(), once, news...); err == nil && writes == 0 {
				t.Error("no error from a store that takes nothing")
			}
		}
		f.left.Store(1_000_000)
		e, err := b.Enqueue(t.Context(), once, news...)
		if err != nil || len(e.Tasks) != len(news) {
			t.Fatalf("%d tasks, %v", len(e.Tasks), err)
		}
		all, err := b.List(t.Context(), view.Listing{Group: "/plain", Limit: 1000})
		if err != nil || len(all.Tasks) != len(news) {
			t.Errorf("%d tasks, want %d: %v", len(all.Tasks), len(news), err)
		}
	})
}
