package queue_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

func TestOfAHundredParallelRequestsOneIsNew(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		const requests = 100
		var mu sync.Mutex
		fresh, ids := 0, map[task.ID]bool{}
		var group sync.WaitGroup
		for range requests {
			o := b
			if !b.store.Exclusive() {
				o = &bench{t: t, store: b.store.(shared).Store, clock: b.clock}
				o = o.another()
			}
			group.Go(func() {
				e, err := o.Enqueue(context.Background(), nil, queue.New{Dialect: task.Job, Job: "/plain", Unique: "u"})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[e.Tasks[0].Task.ID] = true
				if !e.Tasks[0].Existing {
					fresh++
				}
			})
		}
		group.Wait()
		if fresh != 1 || len(ids) != 1 {
			t.Errorf("%d of %d requests were told that theirs is new, and there are %d ids; want 1 and 1", fresh, requests, len(ids))
		}
	})
}

func TestAUniqueKeyIsFreeAfterEveryEnd(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*bench, task.ID){
		"success": func(b *bench, _ task.ID) { b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK}) },
		"failure": func(b *bench, _ task.ID) { b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Failed}) },
		"thrown":  func(b *bench, _ task.ID) { b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Thrown}) },
		"reject":  func(b *bench, _ task.ID) { b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Cancel}) },
		"cancel": func(b *bench, id task.ID) {
			if _, err := b.Stop(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
		},
		"cancel while it runs": func(b *bench, id task.ID) {
			l := b.claim(1)[0]
			if running, err := b.Stop(b.t.Context(), id); err != nil || !running {
				b.t.Fatalf("Stop = %v, %v, want true: it runs", running, err)
			}
			b.complete(l, queue.Result{Outcome: queue.Cancel})
		},
		"drop": func(b *bench, id task.ID) {
			if err := b.Remove(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
		},
		"drop while it runs": func(b *bench, id task.ID) {
			b.claim(1)
			if err := b.Remove(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
		},
		"lease expiry": func(b *bench, _ task.ID) {
			b.claim(1)
			b.clock.advance(time.Hour)
			if swept, err := b.Sweep(b.t.Context()); err != nil || swept.Lost != 1 {
				b.t.Fatalf("a sweep found %d lost tasks, %v, want 1", swept.Lost, err)
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, b *bench) {
				n := queue.New{Dialect: task.Job, Job: "/plain", Unique: "u", Attempts: 1}
				first := b.enqueue(n)[0].Task
				if again := b.enqueue(n)[0]; !again.Existing || again.Task.ID != first.ID {
					t.Fatalf("the key is not held: %+v", again)
				}
				end(b, first.ID)
				if next := b.enqueue(n)[0]; next.Existing {
					t.Errorf("the key is still held by %s, %s", next.Task.ID, next.Task.State)
				}
			})
		})
	}
}

func TestAUniqueKeyOfAJobThatIsNotThereIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := queue.New{Dialect: task.Job, Job: "/gone", Unique: "u", Missing: true}
	b.enqueue(n)
	if next := b.enqueue(n)[0]; next.Existing {
		t.Errorf("the key is held by %s, %s", next.Task.ID, next.Task.State)
	}
}

func TestAUniqueKeyIsHeldThroughItsWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := queue.New{Dialect: task.Job, Job: "/plain", Unique: "u", UniqueWindow: time.Hour}
	b.enqueue(n)
	b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
	if again := b.enqueue(n)[0]; !again.Existing {
		t.Error("the key is free within its window")
	}
	b.clock.advance(time.Hour + time.Second)
	if again := b.enqueue(n)[0]; again.Existing {
		t.Error("the key is held beyond its window")
	}
}

// keyring is a store that notes the items of unique keys.
type keyring struct {
	store.Store
	mu    sync.Mutex
	items map[store.Key]store.Item // that are there
}

// Write notes the items of unique keys.
func (k *keyring) Write(ctx context.Context, w store.Write) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.Store.Write(ctx, w)
	for _, op := range w.Ops {
		if key := op.Item.Key; err == nil && strings.HasPrefix(key.Partition, "unique/") {
			switch op.Kind {
			case store.OpPut:
				k.items[key] = op.Item
			case store.OpDelete:
				delete(k.items, key)
			}
		}
	}
	return err
}

// TestAUniqueKeyWithAWindowLeavesNothingBehind: while its task is unfinished the key's item stays for ever, and once it has ended
// until soon after the window: the store then removes it, whether or not the task is still there.
func TestAUniqueKeyWithAWindowLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Minute
	ends := map[string]func(*bench, task.ID){
		"success": func(b *bench, _ task.ID) { b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK}) },
		"failure": func(b *bench, _ task.ID) { b.complete(b.claim(1)[0], queue.Result{Outcome: queue.Failed}) },
		"stop": func(b *bench, id task.ID) {
			if _, err := b.Stop(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
		},
		"success and removal": func(b *bench, id task.ID) {
			b.complete(b.claim(1)[0], queue.Result{Outcome: queue.OK})
			if err := b.Remove(b.t.Context(), id); err != nil {
				b.t.Fatal(err)
			}
		},
		"purge": func(b *bench, _ task.ID) {
			if _, err := b.Purge(b.t.Context(), "main"); err != nil {
				b.t.Fatal(err)
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, b *bench) {
				k := &keyring{Store: b.store, items: map[store.Key]store.Item{}}
				b = over(t, k)
				n := queue.New{Dialect: task.Job, Job: "/plain", Unique: "u", UniqueWindow: window, Attempts: 1}
				first := b.enqueue(n)[0]
				for _, item := range k.items {
					if !item.Expires.IsZero() {
						t.Errorf("the key of an unfinished task may go at %v", item.Expires)
					}
				}
				end(b, first.Task.ID)
				held := b.clock.now().Add(window)
				if len(k.items) != 1 {
					t.Fatalf("%d items of unique keys, want 1", len(k.items))
				}
				for key, item := range k.items {
					if item.Expires.Before(held) || item.Expires.After(held.Add(2*time.Hour)) {
						t.Errorf("its item stays until %v, want until soon after %v", item.Expires, held)
					}
					b.clock.t = item.Expires.Add(time.Second) // the store removes it
					if err := b.store.Write(t.Context(), store.Write{Token: "removed", Ops: []store.Op{store.Delete(key, store.Always)}}); err != nil {
						t.Fatal(err)
					}
				}
				if again := b.enqueue(n)[0]; again.Existing || again.Task.ID == first.Task.ID {
					t.Errorf("after the window the key is still held by %s", again.Task.ID)
				}
				if again := b.enqueue(n)[0]; !again.Existing {
					t.Error("a second task has the key")
				}
			})
		})
	}
}
