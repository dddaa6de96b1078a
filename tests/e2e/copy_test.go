package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/upgrade"
	"github.com/millrace/millrace/tests/process"
)

const movable = `
jobs:
  - {path: /ok, target: {command: [sh, -c, "true"]}}
schedules:
  - {name: tick, cron: "* * * * * ?", job: /ok}
job_chains:
  - path: /chain
    nodes:
      - {id: ask, prompt: {role: operator, answers: {yes: end}}}
      - {id: end}
`

// TestCopy: a deployment with something of each kind moves from the embedded store to another one and back, and is the same then. A
// server on each copy goes on where the one before has ended.
func TestCopy(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := database(t)
		move(t, url, nil)
	})
	t.Run("DynamoDB", func(t *testing.T) {
		t.Parallel()
		move(t, "dynamodb:"+tables(t), localStack(t))
	})
}

// TestNobodyServesACopyThatIsNotComplete, and it can be begun anew.
func TestNobodyServesACopyThatIsNotComplete(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	s := starts(t, from, nil)
	m := &moving{}
	m.fill(t, s)
	m.stop(t, s)
	half, err := pebble.Open(strings.TrimPrefix(to, "pebble:"), pebble.Options{})
	if err == nil {
		_, err = upgrade.Mark(t.Context(), half, false)
		err = errors.Join(err, half.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]result{
		"serve": command(t, []string{"MILLRACE_ADMIN_TOKEN=x"}, "", "serve", "--listen", "127.0.0.1:0", "--store", to),
		"check": command(t, nil, "", "check", "--store", to),
		"copy":  copied(t, nil, from, to),
	} {
		if r.status == 0 || !strings.Contains(r.err+r.out, "begin it anew with millrace copy --again") {
			t.Errorf("millrace %s: %+v, want the advice to begin anew", name, r)
		}
	}
	if r := copied(t, nil, from, to, "--again"); r.status != 0 {
		t.Fatalf("millrace copy --again: %+v", r)
	}
	s = starts(t, to, nil)
	m.goesOn(t, s)
	m.stop(t, s)
}

// copied runs millrace copy.
func copied(t *testing.T, env []string, from, to string, more ...string) result {
	t.Helper()
	return command(t, env, "", append([]string{"copy", "--from", from, "--to", to}, more...)...)
}

func mustCopy(t *testing.T, env []string, from, to string) {
	t.Helper()
	if r := copied(t, env, from, to); r.status != 0 || !strings.Contains(r.out, "is complete") {
		t.Fatalf("millrace copy: %+v", r)
	}
}

func move(t *testing.T, other string, env []string) {
	t.Helper()
	first, second := embedded(t), embedded(t)
	s := starts(t, first, env)
	m := &moving{}
	m.fill(t, s)
	if r := copied(t, env, first, other); r.status == 0 || !strings.Contains(r.err, "in use by another process") {
		t.Errorf("a copy of what a server uses: %+v, want it refused", r)
	}
	m.stop(t, s)
	mustCopy(t, env, first, other)
	mustCopy(t, env, other, second)
	if diff := cmp.Diff(held(t, first), held(t, second)); diff != "" {
		t.Errorf("there and back (-first +copy):\n%s", diff)
	}
	for _, to := range []string{other, first, second} {
		if r := copied(t, env, first, to); r.status == 0 || to != first && !strings.Contains(r.err, "is not empty") {
			t.Errorf("a copy to where something is: %+v, want it refused", r)
		}
	}

	s = starts(t, other, env)
	m.goesOn(t, s)
	if strings.HasPrefix(other, "postgres:") { // others do not know of those who use them
		if r := copied(t, env, other, embedded(t)); r.status == 0 || !strings.Contains(r.err, "in use") {
			t.Errorf("a copy of what a server uses: %+v, want it refused", r)
		}
	}
	m.stop(t, s)
	third := embedded(t)
	mustCopy(t, env, other, third)
	s = starts(t, third, env)
	m.goesOn(t, s)
	m.stop(t, s)
}

// starts starts a server that ends with the test at the latest.
func starts(t *testing.T, url string, env []string) *process.Server {
	t.Helper()
	s := &process.Server{Binary: os.Getenv(process.Variable), Store: url, Token: token, Env: append([]string{"MILLRACE_DRAIN=1m"}, env...)}
	declared(t, movable)(s)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill() }) // it has ended, unless the test fails
	return s
}

// held returns what a data directory holds, without the mark of the layout.
func held(t *testing.T, url string) map[store.Key][]store.Record {
	t.Helper()
	s, err := pebble.Open(strings.TrimPrefix(url, "pebble:"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := map[store.Key][]store.Record{}
	for r, err := range s.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !upgrade.IsMark(r.Item.Key) {
			all[r.Item.Key] = append(all[r.Item.Key], *r)
		}
	}
	return all
}

// moving is what is known of a deployment that moves.
type moving struct {
	rounds   int64
	last     event.ID   // the newest event that a follower has seen
	fired    time.Time  // of the schedule's newest tick
	waits    client.Job // waits for an instance
	delayed  client.Job // waits for a time
	sequence int64      // of the stream's newest event
}

// fill writes something of each kind.
func (m *moving) fill(t *testing.T, s *process.Server) {
	t.Helper()
	c := dial(t, s)
	for n := range 300 { // more slots than share a partition, in either layout
		if _, err := c.Emit(t.Context(), []event.Event{made(0, n)}); err != nil {
			t.Fatal(err)
		}
	}
	m.more(t, s, c)
	delayed, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "waits", Unique: "later", RunAt: time.Now().Add(24 * time.Hour), Properties: json.RawMessage(`{"large":"` + strings.Repeat("x", 200<<10) + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	m.delayed = delayed
	add(t, s, "/chain", `{"id":"1"}`)
	eventually(t, "somebody is asked", func() bool { return shows(t, s, "/api/v1/orders/%2Fchain/1", `"TYPE":"Prompt"`) })
}

// more adds what the next round goes on with.
func (m *moving) more(t *testing.T, s *process.Server, c *client.Client) {
	t.Helper()
	appended, err := c.AppendToStream(t.Context(), streamOwner, "s", "", streamFact("happened", 1))
	if err != nil {
		t.Fatal(err)
	}
	m.rounds++
	if m.sequence++; appended[0].Sequence != m.sequence {
		t.Errorf("the stream goes on with %d, want %d", appended[0].Sequence, m.sequence)
	}
	if m.waits, _, err = c.AddJob(t.Context(), client.NewJob{Topic: "waits"}); err != nil {
		t.Fatal(err)
	}
	before := m.fired
	eventually(t, "the schedule fires", func() bool {
		found, err := c.Schedule(t.Context(), "tick")
		if err != nil {
			t.Fatal(err)
		}
		if found.Last != nil {
			m.fired = found.Last.FiredAt.Time
		}
		return m.fired.After(before)
	})
}

// stop stops the server, and remembers what is the newest that a follower has.
func (m *moving) stop(t *testing.T, s *process.Server) {
	t.Helper()
	all := readAll(t, dial(t, s))
	m.last = all[len(all)-1].ID
	if err := s.Stop(); err != nil {
		t.Fatalf("the server ended badly: %v", err)
	}
}

// goesOn checks that a server on a copy goes on.
func (m *moving) goesOn(t *testing.T, s *process.Server) {
	t.Helper()
	c := dial(t, s)
	answer, err := c.Read(t.Context(), client.Query{After: m.last})
	if err != nil || answer.Torn || len(answer.Events) == 0 || answer.Events[0].ID <= m.last {
		t.Fatalf("a follower that was at %d gets %+v, %v", m.last, answer, err)
	}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	claimed := make(chan string, 10)
	worker := c.Worker(client.WorkerOptions{Name: "worker", Jobs: map[string]client.Function{"/topics/waits": func(_ context.Context, task *client.Task) (any, error) {
		claimed <- task.ID
		return nil, nil
	}}})
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	if id := <-claimed; id != m.waits.ID {
		t.Errorf("the instance has claimed %s, want %s", id, m.waits.ID)
	}
	eventually(t, "the job that waited has ended, and is forgotten", func() bool {
		_, err := c.Job(t.Context(), m.waits.ID)
		return err != nil && strings.Contains(err.Error(), "404")
	})
	done()
	<-ended
	if again, existing, err := c.AddJob(t.Context(), client.NewJob{Topic: "waits", Unique: "later"}); err != nil || !existing || again.ID != m.delayed.ID || len(again.Properties) < 200<<10 {
		t.Errorf("the job that waits for a time: %s, %v, %v, want %s", again.ID, existing, err, m.delayed.ID)
	}
	if m.rounds == 1 {
		act(t, s, "/api/v1/orders/%2Fchain/1/answer", `{"answer":"yes"}`)
		eventually(t, "the order has ended", func() bool {
			return slices.ContainsFunc(readAll(t, c), func(e event.Event) bool { return e.Type == "OrderFinished" && e.Key.Path == "/chain,1" })
		})
	}
	unread, err := c.ReadStream(t.Context(), client.StreamQuery{Stream: "s", Consumer: streamConsumer})
	if err != nil || len(unread) != 1 || unread[0].Sequence != m.sequence {
		t.Fatalf("the stream has %+v, %v, want the event %d", unread, err, m.sequence)
	}
	if _, err := c.Acknowledge(t.Context(), streamConsumer, "s", unread[0].Event.ID); err != nil {
		t.Error(err)
	}
	m.more(t, s, c)
}
