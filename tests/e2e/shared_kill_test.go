package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
)

// TestKillInSharedRequests kills the server with signal 9 while goroutines of one client add jobs by shared requests: a job that is
// acknowledged is there once, one that is refused is not there, and none is there twice.
func TestKillInSharedRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t))
	c := dial(t, s)
	careless, err := s.Client(client.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	a := &addition{ids: map[string]string{}, doubts: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for writer := range 24 {
		by := c
		if writer%3 == 0 {
			by = careless
		}
		group.Go(func() { a.run(ctx, t, by, writer) })
	}
	for range 3 {
		a.await(t, 100+rand.N(200))
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	group.Wait()
	a.judge(t, c)
}

// addition is jobs that were added.
type addition struct {
	mu     sync.Mutex
	ids    map[string]string // of the jobs that are acknowledged, by name
	doubts map[string]bool   // names of those without a response
}

// run adds jobs until ctx ends; every tenth is refused.
func (a *addition) run(ctx context.Context, t *testing.T, c *client.Client, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		name, topic := fmt.Sprintf("%d-%d", writer, n), "killed"
		if n%10 == 9 {
			topic = "no topic"
		}
		job, _, err := c.AddJob(context.WithoutCancel(ctx), client.NewJob{Topic: topic, Properties: json.RawMessage(`{"name":"` + name + `"}`)})
		switch {
		case topic != "killed":
			if client.StatusOf(err) != 400 && !client.Temporary(err) {
				t.Errorf("a job that is refused: %v", err)
			}
		case err == nil:
			a.note(func() { a.ids[name] = job.ID })
		case client.Temporary(err):
			a.note(func() { a.doubts[name] = true })
			<-time.After(5 * time.Millisecond)
		default:
			t.Errorf("add %s: %v", name, err)
			return
		}
	}
}

func (a *addition) note(what func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what()
}

// await waits until so many more are acknowledged.
func (a *addition) await(t *testing.T, more int) {
	t.Helper()
	count := func() (n int) {
		a.note(func() { n = len(a.ids) })
		return n
	}
	deadline := time.Now().Add(3 * time.Minute)
	for want := count() + more; count() < want; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d are acknowledged, want %d", count(), want)
		}
	}
}

// judge compares with the jobs that are there.
func (a *addition) judge(t *testing.T, c *client.Client) {
	t.Helper()
	there := map[string]string{}
	for job, err := range c.Jobs(t.Context(), client.JobQuery{Topic: "killed"}) {
		if err != nil {
			t.Fatal(err)
		}
		var properties struct{ Name string }
		if err := json.Unmarshal(job.Properties, &properties); err != nil {
			t.Fatal(err)
		}
		if there[properties.Name] != "" {
			t.Errorf("%s is there twice", properties.Name)
		}
		there[properties.Name] = job.ID
		if a.ids[properties.Name] == "" && !a.doubts[properties.Name] {
			t.Errorf("%s is there, and was neither acknowledged nor in doubt", properties.Name)
		}
	}
	for name, id := range a.ids {
		if there[name] != id {
			t.Errorf("%s was acknowledged as %s, and is there as %q", name, id, there[name])
		}
	}
	t.Logf("%d jobs acknowledged, %d in doubt, %d there", len(a.ids), len(a.doubts), len(there))
}
