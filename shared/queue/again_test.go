package queue_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A task is retried once, however often Retry is called with the same key; while another task holds its unique key, Retry returns
// that one.
func TestRetryIsOnceAndMindsTheUniqueKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	failed := b.enqueue(queue.SyncTask("S", "A", 300))[0].Task
	b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Failed})
	once := &queue.Once{Scope: "test", Key: "k"}
	first, err := b.Retry(t.Context(), once, failed.ID)
	if err != nil || first.Tasks[0].Existing || first.Replayed {
		t.Fatalf("Retry = %+v, %v, want a new task", first, err)
	}
	same, err := b.Retry(t.Context(), once, failed.ID)
	if err != nil || !same.Replayed || same.Tasks[0].Task.ID != first.Tasks[0].Task.ID {
		t.Errorf("Retry with the same key = %+v, %v, want %s again", same, err, first.Tasks[0].Task.ID)
	}
	other, err := b.Retry(t.Context(), nil, failed.ID)
	if err != nil || !other.Tasks[0].Existing || other.Tasks[0].Task.ID != first.Tasks[0].Task.ID {
		t.Errorf("Retry while the key is held = %+v, %v, want its holder", other, err)
	}
}

// A task shows the start time that was requested, and later that of its next attempt.
func TestNotBeforeStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	asked := b.clock.now().Add(time.Hour)
	id := b.enqueue(queue.New{Dialect: task.Job, Job: "/strict", NotBefore: asked})[0].Task.ID
	b.clock.advance(2 * time.Hour)
	lease := b.claim(1)[0]
	if got, err := b.Get(t.Context(), id); err != nil || got.NotBefore != asked.UnixMicro() {
		t.Errorf("while it runs NotBefore = %v, %v, want %v", time.UnixMicro(got.NotBefore), err, asked)
	}
	b.complete(lease, queue.Result{Outcome: queue.Failed})
	next := b.clock.now().Add(time.Minute)
	if got, err := b.Get(t.Context(), id); err != nil || got.NotBefore != next.UnixMicro() {
		t.Errorf("after a failure NotBefore = %v, %v, want %v", time.UnixMicro(got.NotBefore), err, next)
	}
}

// A request that is repeated with its key gets the first result again, also if the task has left the history since.
func TestARepeatedRequestIsAnsweredAlsoWhenItsTaskIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	once := &queue.Once{Scope: "test", Key: "k"}
	first, err := b.Enqueue(t.Context(), once, queue.New{Dialect: task.Job, Job: "/plain"})
	if err != nil {
		t.Fatal(err)
	}
	id := first.Tasks[0].Task.ID
	for range 2 { // dropped, then removed from the history
		if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	again, err := b.Enqueue(t.Context(), once, queue.New{Dialect: task.Job, Job: "/plain"})
	if err != nil || !again.Replayed || again.Tasks[0].Task.ID != id || again.Tasks[0].Existing {
		t.Errorf("Enqueue with the same key = %+v, %v, want %s again", again, err, id)
	}
}

// The result of a request that made nothing is remembered, and again by the first request after its time is over.
func TestAResultWithoutNewTasksIsRememberedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	once := &queue.Once{Scope: "test", Key: "k"}
	held := b.enqueue(queue.SyncTask("S", "A", 300))[0].Task.ID
	for range 2 {
		if e, err := b.Enqueue(t.Context(), once, queue.SyncTask("S", "A", 300)); err != nil || e.Replayed || e.Tasks[0].Task.ID != held {
			t.Fatalf("Enqueue while the unique key is held = %+v, %v, want its holder", e, err)
		}
		b.clock.advance(journal.OnceFor + time.Second)
	}
	b.clock.advance(-time.Minute)
	b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
	again, err := b.Enqueue(t.Context(), once, queue.SyncTask("S", "A", 300))
	if err != nil || !again.Replayed || !again.Tasks[0].Existing || again.Tasks[0].Task.ID != held {
		t.Errorf("Enqueue with the same key = %+v, %v, want %s again", again, err, held)
	}
}

// What existed is kept with the result as far as an item has room: beyond that without payload and output, or not at all.
func TestAResultWithLargeTasksThatExistedIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b *bench) {
		large, text := json.RawMessage(`"`+strings.Repeat("x", queue.MaxPayload-2)+`"`), strings.Repeat("x", 8<<10)
		var held []queue.Added
		var same []queue.New
		for i := range 20 {
			n := queue.New{Dialect: task.Job, Job: "/plain", Unique: strconv.Itoa(i), Fairness: text, UniqueWindow: time.Hour, Payload: large}
			same = append(same, queue.New{Dialect: task.Job, Job: "/plain", Unique: n.Unique})
			held = append(held, b.enqueue(n)[0])
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK, Output: large})
		}
		once := &queue.Once{Scope: "test", Key: "k"}
		same = append(same, queue.New{Dialect: task.Job, Job: "/plain", Unique: "new"})
		for range 2 {
			got, err := b.Enqueue(t.Context(), once, same...)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range got.Tasks[:len(held)] {
				if !a.Existing || a.Task.ID != held[i].Task.ID || a.Task.State != task.Succeeded || a.Task.Fairness != text {
					t.Errorf("task %d = %s, %s, existing %v, want the one that existed", i, a.Task.ID, a.Task.State, a.Existing)
				}
			}
		}
	})
}

// A result that an earlier version has kept says less of tasks that existed: they are returned as they are now, or as far as is known.
func TestAResultOfAnEarlierVersionIsReturned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := b.enqueue(queue.SyncTask("S", "A", 300))[0].Task.ID
	once := &queue.Once{Scope: "test", Key: "k"}
	value, err := json.Marshal(map[string]any{"f": once.Fingerprint[:], "t": []any{map[string]any{"id": held, "x": true}}})
	if err != nil {
		t.Fatal(err)
	}
	note := store.Item{Key: layout.OnceKey(once), Value: value, Version: 1, Expires: b.clock.now().Add(time.Hour)}
	if err := b.store.Write(t.Context(), store.Write{Ops: []store.Op{store.Put(note, store.Absent)}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []task.State{task.Ready, task.Dropped, ""} {
		got, err := b.Enqueue(t.Context(), once, queue.SyncTask("S", "A", 300))
		if err != nil || !got.Replayed || !got.Tasks[0].Existing || got.Tasks[0].Task.ID != held || got.Tasks[0].Task.State != want {
			t.Errorf("Enqueue = %+v, %v, want %s, %s", got, err, held, want)
		}
		if want != "" {
			if err := b.Remove(t.Context(), held); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// PutOff is the time of the first of several postponements in a row, however old the task is.
func TestPutOffSinceTheFirstAnswerInARow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(queue.New{Dialect: task.Job, Job: "/strict"})[0].Task.ID
	b.clock.advance(48 * time.Hour) // it waited for its turn
	since := b.clock.now().UnixMicro()
	for i, step := range []struct {
		outcome queue.Outcome
		want    int64
	}{
		{queue.Again, since}, {queue.Again, since}, {queue.Failed, 0}, {queue.Again, since + (3 * time.Hour).Microseconds()},
	} {
		b.complete(b.claim(1)[0], queue.Result{Outcome: step.outcome, RetryDelay: time.Hour})
		got, err := b.Get(t.Context(), id)
		if err != nil || got.PutOff != step.want {
			t.Errorf("%d: put off since %v, %v, want %v", i, time.UnixMicro(got.PutOff), err, time.UnixMicro(step.want))
		}
		b.clock.advance(time.Hour)
	}
}
