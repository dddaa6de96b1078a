package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

// TestAHundredAskForOneTask: of a hundred requests at once for a collection, one makes a task and all others get its id, also
// where they come by two servers; when it has ended the collection is free.
func TestAHundredAskForOneTask(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]func(*testing.T, func(*process.Server)) []*process.Server{
		"embedded": func(t *testing.T, d func(*process.Server)) []*process.Server {
			return []*process.Server{serve(t, embedded(t), d)}
		},
		"DynamoDB, two servers": func(t *testing.T, d func(*process.Server)) []*process.Server {
			on, url := onLocalStack(t), "dynamodb:"+tables(t)
			return []*process.Server{serve(t, url, on, d), serve(t, url, on, d)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := filepath.Join(t.TempDir(), "gate")
			all := servers(t, declared(t, fmt.Sprintf(
				`{sources: {s: {target: {command: [sh, -c, "while [ ! -e '%s' ]; do sleep 0.05; done"]}, collections: [{name: c}]}}}`, gate)))
			ids, made := askAtOnce(t, all, 100)
			if len(ids) != 1 || made != 1 {
				t.Errorf("100 requests made %d tasks and were answered with %d ids, want 1 and 1", made, len(ids))
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c := dial(t, all[0])
			eventually(t, "the collection is free again", func() bool {
				_, existing, err := c.EnqueueSync(t.Context(), "s", "c", 300)
				return err == nil && !existing
			})
		})
	}
}

// askAtOnce sends that many requests for the collection at once, and returns the ids and how many of them were new.
func askAtOnce(t *testing.T, servers []*process.Server, times int) (ids map[string]bool, made int) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	ids = map[string]bool{}
	for i := range times {
		c := dial(t, servers[i%len(servers)])
		group.Go(func() {
			id, existing, err := c.EnqueueSync(context.WithoutCancel(t.Context()), "s", "c", 300)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("enqueue: %v", err)
				return
			}
			ids[id] = true
			if !existing {
				made++
			}
		})
	}
	group.Wait()
	return ids, made
}

// fixedSet is a set of definitions that does not change.
type fixedSet struct{ set *definition.Set }

func (f fixedSet) Current(context.Context) (*definition.Set, error) { return f.set, nil }

// TestTenCronFunctionsAtOnce: however many processes make a schedule's ticks at the same time, with clocks seconds apart, each
// tick is one task, on both stores.
func TestTenCronFunctionsAtOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) store.Store{
		"embedded": func(t *testing.T) store.Store {
			s, err := pebble.Open(t.TempDir(), pebble.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"DynamoDB": func(t *testing.T) store.Store { return containers.Dynamo(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			set := fixedSet{&definition.Set{
				Jobs:      []definition.Job{{Path: "/job", Target: definition.Target{Go: "f"}}},
				Schedules: []definition.Schedule{{Name: "s", Cron: "0/5 * * * * ?", Job: "/job", Misfire: schedule.MisfireAll}},
			}}
			began := time.Now().Truncate(time.Minute)
			process := func() (look func(at time.Time) error) {
				j := journal.Open(s, journal.Options{Folds: projection.Folds()})
				t.Cleanup(func() { _ = j.Close() })
				q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: set})
				return func(at time.Time) error {
					_, err := schedule.Open(schedule.Options{
						Store: s, Journal: j, Queue: q, Definitions: set, Now: func() time.Time { return at },
					}).Make(t.Context(), at.Add(time.Minute))
					return err
				}
			}
			if err := process()(began); err != nil { // the schedule begins
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range 10 {
				ahead, look := time.Duration(i)*3*time.Second, process()
				group.Go(func() {
					for minute := range 3 {
						if err := look(began.Add(time.Duration(minute)*time.Minute + ahead)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			last := began.Add(2*time.Minute + 27*time.Second)
			if err := process()(last); err != nil { // of those at once any may have won, and the others have yielded
				t.Fatal(err)
			}
			q := queue.Open(queue.Options{Store: s, Definitions: set})
			page, err := q.List(t.Context(), view.Listing{Group: "/job", Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if want := int(last.Add(time.Minute).Sub(began) / (5 * time.Second)); len(page.Tasks) != want {
				t.Errorf("%d tasks, want %d: one for each tick", len(page.Tasks), want)
			}
			for i := 1; i < len(page.Tasks); i++ {
				if at := page.Tasks[i].ID.Time(); at == page.Tasks[i-1].ID.Time() {
					t.Errorf("the tick of %v is two tasks", time.UnixMicro(at))
				}
			}
		})
	}
}
