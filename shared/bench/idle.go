package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
)

// Idle measures what waiting workers cost a server.
type Idle struct {
	Scratch
	Workers  int           `help:"How many wait." default:"1000"`
	Duration time.Duration `help:"How long each case takes." default:"20s"`
}

// Help says what the cases and the columns are.
func (Idle) Help() string {
	return `Two cases, each with a server in a process of its own: POLLS, claims that wait and do nothing else; and WORKERS, those of package
client, which wait 20 s at a time and send a heartbeat every 10 s. CPU is the part of one core that the server uses. MEMORY is what it
has resident for each of them, beyond what it had without any, at the start of the measurement, and LATER at its end; likewise its
goroutines. What is resident includes garbage that is still to be collected; with GOGC=20 in the environment there is little of it.`
}

// settle is how long the waiters have to connect, and to send their first heartbeats, before the measurement begins.
const settle = 12 * time.Second

// Run measures both cases.
func (b Idle) Run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("CASE\tWAITING\tCPU\tREQUESTS/S\tMEMORY\tLATER\tGOROUTINES\tLATER",
		"case", "waiting", "cpu", "requests_per_s", "memory_each", "memory_each_later", "goroutines_each", "goroutines_each_later")
	on := func(name string, wait waiter) error {
		return b.dir(func(dir string) error {
			return p.serve(ctx, dir, func(url, token string) error {
				return b.measure(ctx, r, client.Options{URL: url, Token: token}, name, wait)
			})
		})
	}
	return r, errors.Join(on("polls", poll), on("workers", stay))
}

// waiter waits for tasks that never come, until ctx ends.
type waiter func(ctx context.Context, o client.Options, name string) error

// measure measures a server with waiters.
func (b Idle) measure(ctx context.Context, r *Results, o client.Options, name string, wait waiter) error {
	observer, err := client.New(o)
	if err != nil {
		return err
	}
	without, err := used(ctx, observer)
	if err != nil {
		return err
	}
	o.HTTP = &http.Client{Transport: wideTransport(2 * b.Workers)}
	waiting, end := context.WithCancel(ctx)
	return together(ctx, b.Workers+1, func(ctx context.Context, i int) error {
		if i < b.Workers {
			err := wait(waiting, o, fmt.Sprint("bench-", i))
			if waiting.Err() != nil {
				return nil // it was over
			}
			return errors.Join(errors.New("a worker did not wait to the end"), err)
		}
		defer end()
		return b.watch(ctx, r, name, observer, without)
	})
}

// watch measures the server while they wait.
func (b Idle) watch(ctx context.Context, r *Results, name string, observer *client.Client, without usage) error {
	for registered := 0.0; registered < float64(b.Workers); {
		now, err := used(ctx, observer)
		if err != nil {
			return err
		}
		registered = now.requests - without.requests
		if err := pause(ctx, time.Second/10); err != nil {
			return err
		}
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	first, err := used(ctx, observer)
	if err != nil {
		return err
	}
	if err := pause(ctx, b.Duration); err != nil {
		return err
	}
	last, err := used(ctx, observer)
	if err != nil {
		return err
	}
	r.add(name, b.Workers, share((last.cpu-first.cpu)/b.Duration.Seconds()),
		rate(max(0, last.requests-first.requests-1)/b.Duration.Seconds()), // but for the first look
		b.memory(without, first), b.memory(without, last), b.goroutines(without, first), b.goroutines(without, last))
	return nil
}

// memory returns the memory that each waiter adds.
func (b Idle) memory(without, with usage) kibibytes {
	return kibibytes((with.memory - without.memory) / float64(b.Workers) / 1024)
}

func (b Idle) goroutines(without, with usage) float64 {
	return math.Round(10*(with.goroutines-without.goroutines)/float64(b.Workers)) / 10
}

// pause waits; if ctx ends before, it returns why.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// poll registers an instance and has it wait in one request.
func poll(ctx context.Context, o client.Options, name string) error {
	var instance struct{ ID string }
	const instances = "/api/v1/instances"
	about := map[string]any{"name": name, "jobs": []string{benchTopic}, "capacity": 1}
	if err := post(ctx, o, instances, about, &instance); err != nil {
		return err
	}
	return post(ctx, o, instances+"/"+instance.ID+"/claims", map[string]any{"max": 1, "wait": "1h"}, nil)
}

// post sends an object and reads the response into into, if it is not nil.
func post(ctx context.Context, o client.Options, path string, object map[string]any, into any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+o.Token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := o.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("POST %s: %s", path, answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// stay waits as a worker does.
func stay(ctx context.Context, o client.Options, name string) error {
	c, err := client.New(o)
	if err != nil {
		return err
	}
	return c.Worker(client.WorkerOptions{Name: name, Jobs: map[string]client.Function{benchTopic: nothing}}).Run(ctx)
}

// usage is a server's own measurements.
type usage struct {
	cpu        float64 // seconds
	memory     float64 // bytes resident
	goroutines float64
	requests   float64 // those that are finished
}

// used reads a server's /metrics.
func used(ctx context.Context, c *client.Client) (usage, error) {
	text, _, err := c.Get(ctx, "/metrics")
	if err != nil {
		return usage{}, err
	}
	var u usage
	known := map[string]*float64{
		"process_cpu_seconds_total": &u.cpu, "process_resident_memory_bytes": &u.memory, "go_goroutines": &u.goroutines,
		"millrace_http_request_duration_seconds_count": &u.requests, // of each route
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(words[0], "{")
		sum, ok := known[name]
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return usage{}, fmt.Errorf("/metrics: %q: %w", line, err)
		}
		*sum += value
	}
	return u, nil
}
