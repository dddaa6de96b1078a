package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Claims measures remote workers that claim and end tasks over HTTP.
type Claims struct {
	Scratch
	Workers  []int         `help:"How many remote workers." default:"1,4,16"`
	Batch    []int         `help:"How many tasks each of them claims, and runs, at once." default:"1,32"`
	Tasks    int           `help:"Tasks that wait at the start; all cases together run fewer." default:"100000"`
	Size     int           `help:"Bytes of a task's payload." default:"256"`
	Duration time.Duration `help:"How long each case takes." default:"3s"`
}

// Help says what the columns mean.
func (Claims) Help() string {
	return `The workers are those of package client, all in this process; the server is a process of its own. A task counts when its end is
acknowledged; it does nothing. Its start and its end are each durable before they are answered. PER CLAIM is how many tasks a claim
brought, CPU PER TASK the server's processor time. HTTP/S is how many requests a second a server takes from as many callers if it answers at once, DISK/S how many records go to
the disk from so many writers; both are measured just before.`
}

// benchTopic is the job that remote workers run.
const benchTopic = "/topics/bench"

// Run measures every case.
func (b Claims) Run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("WORKERS\tBATCH\tTASKS/S\tPER CLAIM\tREQUESTS/S\tCPU PER TASK\tHTTP/S\tDISK/S",
		"workers", "batch", "tasks_per_s", "tasks_per_claim", "requests_per_s", "cpu_ms_per_task", "http_per_s", "disk_per_s")
	return r, b.dir(func(dir string) error {
		if err := b.fill(ctx, p, dir); err != nil {
			return err
		}
		return p.serve(ctx, dir, func(url, token string) error {
			return b.cases(ctx, p, r, dir, client.Options{URL: url, Token: token})
		})
	})
}

func (b Claims) cases(ctx context.Context, p Program, r *Results, dir string, o client.Options) error {
	left := int64(b.Tasks)
	for _, batch := range b.Batch {
		for _, workers := range b.Workers {
			n, err := b.measure(ctx, p, r, dir, o, workers, batch)
			if err != nil {
				return err
			}
			if left -= n; left <= 0 {
				return errors.New("the tasks did not last: give more --tasks")
			}
		}
	}
	return nil
}

// fill puts the tasks into the store below a directory.
func (b Claims) fill(ctx context.Context, p Program, dir string) error {
	n, err := p.Open(ctx, config.Settings{Store: storeURL(dir)})
	if err != nil {
		return err
	}
	payload := text(b.Size)
	var next atomic.Int64
	err = together(ctx, 16, func(ctx context.Context, _ int) error {
		for ctx.Err() == nil {
			end := int(next.Add(queue.MaxBatch))
			count := min(queue.MaxBatch, b.Tasks-end+queue.MaxBatch)
			if count <= 0 {
				break
			}
			tasks := make([]queue.New, count)
			for i := range tasks {
				tasks[i] = queue.New{Dialect: task.Job, Job: benchTopic, Payload: payload}
			}
			if _, err := n.Queue.Enqueue(ctx, nil, tasks...); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, n.Close())
}

// measure measures one case, and just before it the most that the disk and the HTTP stack can do. It returns how many
// tasks were run.
func (b Claims) measure(ctx context.Context, p Program, r *Results, dir string, o client.Options, workers, batch int) (int64, error) {
	callers := workers * batch
	disk, err := diskFloor(dir, callers, b.Size, b.Duration/3)
	if err != nil {
		return 0, err
	}
	stack, err := p.stackRate(ctx, callers, 1, b.Size, b.Duration/3)
	if err != nil {
		return 0, err
	}
	count, elapsed, err := claims(ctx, o, workers, batch, b.Duration)
	if err != nil {
		return 0, err
	}
	completed := count.completed.Load()
	each := math.Round(10*float64(completed)/float64(max(1, count.claims.Load()))) / 10
	r.add(workers, batch, rate(float64(completed)/elapsed.Seconds()), each,
		rate(float64(count.all.Load())/elapsed.Seconds()), took(int64(count.cpu)/max(1, completed)), rate(stack), rate(disk))
	return completed, nil
}

// claims lets workers run tasks for a while, each that many at once, and returns the requests to the server meanwhile.
func claims(ctx context.Context, o client.Options, workers, batch int, duration time.Duration) (*requestCount, time.Duration, error) {
	count := &requestCount{next: wideTransport(workers * (batch + 2))}
	o.HTTP = &http.Client{Transport: count}
	c, err := client.New(o)
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	before, err := used(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	working, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var elapsed time.Duration
	var trouble firstError
	began := time.Now()
	err = together(ctx, workers+1, func(_ context.Context, i int) error {
		if i == workers {
			<-working.Done()
			elapsed = time.Since(began)
			count.stopped.Store(true)
			return nil
		}
		return c.Worker(client.WorkerOptions{
			Name: fmt.Sprint("bench-", i), Capacity: batch, OnError: trouble.note,
			Jobs: map[string]client.Function{benchTopic: nothing},
		}).Run(working)
	})
	if err = errors.Join(err, trouble.err); err != nil {
		return nil, 0, err
	}
	after, err := used(ctx, c)
	count.cpu = time.Duration((after.cpu - before.cpu) * float64(time.Second))
	return count, elapsed, err
}

// nothing is the function that tasks run.
func nothing(context.Context, *client.Task) (any, error) { return nil, nil }

// wideTransport returns an HTTP transport that keeps that many connections.
func wideTransport(connections int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	return t
}

// requestCount counts the requests that succeeded, until it is stopped.
type requestCount struct {
	next                   *http.Transport
	stopped                atomic.Bool
	all, claims, completed atomic.Int64
	cpu                    time.Duration // of the server, meanwhile
}

// RoundTrip implements [http.RoundTripper].
func (c *requestCount) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil || answer.StatusCode/100 != 2 || c.stopped.Load() {
		return answer, err
	}
	c.all.Add(1)
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/claims"):
		c.claims.Add(1)
	case strings.HasSuffix(path, "/complete"):
		c.completed.Add(1)
	}
	return answer, nil
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the connections.
func (c *requestCount) CloseIdleConnections() { c.next.CloseIdleConnections() }

// firstError keeps the first error of several goroutines.
type firstError struct {
	once sync.Once
	err  error
}

func (f *firstError) note(err error) { f.once.Do(func() { f.err = err }) }
