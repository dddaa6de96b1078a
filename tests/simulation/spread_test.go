package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

const (
	instances = 3
	capacity  = 4 // of each
	shortest  = time.Second
	longest   = 100 * shortest
)

// TestLoadSpreads: real workers, speaking the real protocol, run tasks whose lengths vary a hundredfold. Every slot of every instance
// is busy until the last task has been started, and all tasks are done in at most 1.1 times the lower bound of any schedule.
func TestLoadSpreads(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("alone=%v/%d", alone, seed), func(t *testing.T) {
				cryptotest.SetGlobalRandom(t, seed)
				synctest.Test(t, func(t *testing.T) { spread(t, seed, alone) })
			})
		}
	}
}

func spread(t *testing.T, seed uint64, alone bool) {
	p := &pool{lengths: lengths(seed, 600), began: time.Now()}
	engines, end := serve(t, seed, alone)
	defer end()
	p.enqueue(t, engines[0].Queue)
	ctx, leave := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range instances {
		workers.Go(func() {
			w := engines[i%len(engines)].dial(t).Worker(client.WorkerOptions{
				Name: fmt.Sprint(i), Capacity: capacity, OnError: func(err error) { t.Error(err) },
				Jobs: map[string]client.Function{"/topics/*": func(_ context.Context, task *client.Task) (any, error) {
					return nil, p.run(i, task.Payload)
				}},
			})
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	p.ended.Wait()
	took := time.Since(p.began)
	leave()
	workers.Wait()
	p.verify(t, took)
}

// lengths returns n lengths, distributed evenly over the orders of magnitude.
func lengths(seed uint64, n int) []time.Duration {
	luck := dice(seed, "lengths")
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(float64(shortest) * math.Pow(float64(longest/shortest), luck.Float64()))
	}
	return all
}

// pool holds the tasks to run, and by which instance each was run.
type pool struct {
	lengths []time.Duration
	began   time.Time
	ended   sync.WaitGroup

	mu    sync.Mutex
	runs  []stretch
	total time.Duration
}

// stretch is one run of a task.
type stretch struct {
	instance   int
	began, end time.Time
}

func (p *pool) enqueue(t *testing.T, q *queue.Queue) {
	t.Helper()
	p.ended.Add(len(p.lengths))
	for from := 0; from < len(p.lengths); from += queue.MaxBatch {
		var news []queue.New
		for _, length := range p.lengths[from:min(from+queue.MaxBatch, len(p.lengths))] {
			news = append(news, queue.New{Dialect: task.Job, Job: "/topics/work", Payload: fmt.Appendf(nil, "%d", length)})
		}
		if _, err := q.Enqueue(t.Context(), nil, news...); err != nil {
			t.Fatal(err)
		}
	}
	p.began = time.Now()
}

// run sleeps for as long as a task's payload says.
func (p *pool) run(instance int, payload json.RawMessage) error {
	var length time.Duration
	if err := json.Unmarshal(payload, &length); err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(length)
	p.mu.Lock()
	p.runs = append(p.runs, stretch{instance, began, time.Now()})
	p.total += length
	p.mu.Unlock()
	p.ended.Done()
	return nil
}

func (p *pool) verify(t *testing.T, took time.Duration) {
	t.Helper()
	bound, last := p.total/(instances*capacity), p.began
	for _, length := range p.lengths {
		bound = max(bound, length)
	}
	for _, r := range p.runs {
		if r.began.After(last) {
			last = r.began
		}
	}
	var busy [instances]time.Duration
	for _, r := range p.runs {
		end := r.end
		if end.After(last) {
			end = last
		}
		busy[r.instance] += end.Sub(r.began)
	}
	for i, of := range busy {
		if share := float64(of) / float64(capacity*last.Sub(p.began)); share < 0.99 || share > 1 {
			t.Errorf("instance %d was busy for %.2f %% of its places' time until the last task was started", i, 100*share)
		}
	}
	if over := float64(took)/float64(bound) - 1; over > 0.1 || len(p.runs) != len(p.lengths) {
		t.Errorf("%d tasks took %v, %.1f %% over %v, which no schedule can beat", len(p.runs), took, 100*over, bound)
	} else {
		t.Logf("%d tasks took %v, %.1f %% over %v; the last one began after %v", len(p.runs), took, 100*over, bound, last.Sub(p.began))
	}
}

// undeclared is an empty set of definitions: every job is run by instances.
type undeclared struct{}

// Current returns the set.
func (undeclared) Current(context.Context) (*definition.Set, error) { return &definition.Set{}, nil }

// site is one server process.
type site struct {
	*queue.Queue
	handler http.Handler
}

// serve returns one server that has its store to itself, or one for each instance over a store behind a network.
func serve(t *testing.T, seed uint64, alone bool) (sites []*site, end func()) {
	t.Helper()
	base := memory.New(memory.Options{})
	stores := []store.Store{base}
	if !alone {
		way := faulty.Spread{Min: time.Millisecond, Max: 5 * time.Millisecond}
		network := faulty.NewService(base, faulty.Faults{Seed: seed, There: way, Back: way}, nil)
		stores = nil
		for i := range instances {
			stores = append(stores, network.Process(fmt.Sprint(i)))
		}
	}
	var journals []*journal.Journal
	for _, s := range stores {
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: undeclared{}})
		handler := api.New(api.Options{Tokens: []access.Token{access.NewToken("worker", access.Worker, "secret")}},
			api.Instances(membership.Open(membership.Options{Store: s}), q))
		sites, journals = append(sites, &site{q, handler}), append(journals, j)
	}
	return sites, func() {
		for i := range sites {
			sites[i].Drain()
			_ = journals[i].Close()
		}
	}
}

// dial returns a client that calls the server without a network, so that all waiting is virtual.
func (s *site) dial(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://server", Token: "secret", HTTP: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// RoundTrip serves the request.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}
