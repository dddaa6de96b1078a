package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/postgres"
	"github.com/millrace/millrace/tests/process"
	"github.com/millrace/millrace/tests/witness"
)

func TestMain(m *testing.M) {
	os.Exit(process.RunBuilt(func() int { return postgres.Run(inContainers{m}) }))
}

// inContainers are the tests, with what they need in containers.
type inContainers struct{ m *testing.M }

// Run runs them.
func (c inContainers) Run() int { return containers.Run(c.m) }

// deployment is where tests run that need no process of their own, if it is set: the address of what was deployed, such as the emulated
// account's gateway. Its tables are empty at first, and its admin's token is token.
const deployment = "MILLRACE_TEST_DEPLOYMENT"

const token = "e2e-token"

// everywhere runs a test on each store, or where something was deployed.
func everywhere(t *testing.T, test func(t *testing.T, s *process.Server)) {
	t.Helper()
	t.Parallel()
	if at := os.Getenv(deployment); at != "" {
		test(t, process.At(at, token))
		return
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, serve(t, embedded(t)))
	})
	t.Run("DynamoDB", func(t *testing.T) {
		t.Parallel()
		test(t, serve(t, "dynamodb:"+tables(t), onLocalStack(t)))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, serve(t, database(t)))
	})
}

// served returns a server on the embedded store, or what was deployed.
func served(t *testing.T) *process.Server {
	t.Helper()
	if at := os.Getenv(deployment); at != "" {
		return process.At(at, token)
	}
	return serve(t, embedded(t))
}

// declare declares what a file says, and nothing else.
func declare(t *testing.T, s *process.Server, file string) {
	t.Helper()
	r := newRequest(t, s, http.MethodPut, "/api/v1/definitions", file)
	r.Header.Set("Content-Type", "application/yaml")
	response, err := process.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the definitions: %s", response.Status)
	}
}

// serve starts a server on a store, which ends with the test.
func serve(t *testing.T, store string, change ...func(*process.Server)) *process.Server {
	t.Helper()
	s := &process.Server{Binary: os.Getenv(process.Variable), Store: store, Token: token}
	if !strings.HasPrefix(store, "pebble:") {
		s.Env = []string{"MILLRACE_DRAIN=1m"} // however slow the database is
	}
	for _, c := range change {
		c(s)
	}
	return s.Serve(t)
}

// embedded returns the URL of a fresh embedded store.
func embedded(t *testing.T) string { return "pebble:" + t.TempDir() + "/store" }

// dial returns a client that waits long for a server that is away.
func dial(t *testing.T, s *process.Server) *client.Client {
	t.Helper()
	return s.Dial(t)
}

// made returns the nth event of a writer. No other event has its key.
func made(writer, n int) event.Event {
	return event.Event{
		Type: "Made" + strconv.Itoa(n%3), Key: event.Key{Path: fmt.Sprintf("/writers/%d/%d", writer, n)},
		Fields: fmt.Appendf(nil, `"n":%d`, n),
	}
}

// follower reads the journal from its beginning while it grows.
type follower struct {
	query client.Query
	match func(*event.Event) bool

	mu   sync.Mutex
	saw  []event.Event
	last event.ID
	err  error
	done chan struct{}
}

// follow starts the followers; they end with the test.
func follow(t *testing.T, s *process.Server, followers ...*follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for _, f := range followers {
		f.done = make(chan struct{})
		f.query.Wait = time.Second
		c := dial(t, s)
		go f.run(ctx, c)
	}
}

func (f *follower) run(ctx context.Context, c *client.Client) {
	defer close(f.done)
	for step, err := range c.Follow(ctx, f.query) {
		f.mu.Lock()
		f.saw = append(f.saw, step.Events...)
		f.last, f.err = max(f.last, step.Last), err
		if limit := f.query.Limit; limit > 0 && len(step.Events) > limit {
			f.err = fmt.Errorf("an answer has %d events, over its limit of %d", len(step.Events), limit)
		}
		f.mu.Unlock()
	}
}

// seen returns what the follower has seen once it has come to an id.
func (f *follower) seen(t *testing.T, end event.ID) []event.Event {
	t.Helper()
	var saw []event.Event
	eventually(t, fmt.Sprintf("the follower of %+v is at %d", f.query, end), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err != nil {
			t.Fatalf("the follower of %+v ended: %v", f.query, f.err)
		}
		saw = f.saw
		return f.last >= end
	})
	return saw
}

// judge checks that every follower saw what was acknowledged and matches, and nothing else but what is doubted: events of
// which it is not known whether they were appended.
func judge(t *testing.T, w *witness.Witness, doubted func(event.Event) bool, followers ...*follower) {
	t.Helper()
	journal := w.Journal(nil)
	end := journal[len(journal)-1].ID
	for _, f := range followers {
		saw := slices.DeleteFunc(slices.Clone(f.seen(t, end)), func(e event.Event) bool { return ofServer(e) || doubted(e) })
		if v := witness.Judge(w.Journal(f.match), saw); !v.OK() {
			t.Errorf("the follower of %+v saw: %v", f.query, v)
		}
	}
}

// ofServer reports whether it is an event of the life of a server.
func ofServer(e event.Event) bool { return event.FamilyOf(e.Type) == event.SchedulerEvent }

// nothing is the doubted events where every append got a response.
func nothing(event.Event) bool { return false }

// everyWay returns followers with every page size and kind of filter.
func everyWay() []*follower {
	var all []*follower
	for _, limit := range []int{0, 1, 3, 7} {
		all = append(all,
			&follower{query: client.Query{Limit: limit}},
			&follower{
				query: client.Query{Limit: limit, Types: []string{"Made1"}},
				match: func(e *event.Event) bool { return e.Type == "Made1" },
			})
	}
	return append(all,
		&follower{
			query: client.Query{Path: "/writers/0/"},
			match: func(e *event.Event) bool { return len(e.Key.Path) > 11 && e.Key.Path[:11] == "/writers/0/" },
		},
		&follower{
			query: client.Query{Types: []string{"OrderEvent"}},
			match: func(*event.Event) bool { return false },
		})
}
