package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

const (
	streamOwner    = "2480b859-e08a-4414-9c7d-003bc1a4c238"
	streamConsumer = "f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10"
)

// streamFact is the nth event of a stream's name.
func streamFact(name string, n int) client.StreamEvent {
	return client.StreamEvent{
		Event:   client.StreamFact{Name: name},
		System:  client.StreamSystem{ID: streamOwner, Name: "test", Time: "2026-03-10T22:13:32Z", Timezone: "Europe/Berlin"},
		Trigger: client.StreamTrigger{Type: "automatic", Name: "/test"},
		Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

// onDynamo returns clients of servers that share tables in LocalStack.
func onDynamo(t *testing.T, servers int) []*client.Client {
	t.Helper()
	endpoint, prefix := containers.LocalStack(t), tables(t)
	all := make([]*client.Client, servers)
	for i := range all {
		all[i] = dial(t, serve(t, "dynamodb:"+prefix, func(s *process.Server) {
			s.Env = append(s.Env, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "AWS_REGION=us-east-1",
				"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
		}))
	}
	return all
}

// TestConcurrentStreamAppends: 500 appends at once through four processes take the sequences 1 to 500, in the order of the
// journal.
func TestConcurrentStreamAppends(t *testing.T) {
	t.Parallel()
	const n, each = 500, 125
	clients := onDynamo(t, 4)
	all := make([]client.Appended, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			got, err := clients[i/each].AppendToStream(t.Context(), streamOwner, "one / stream", fmt.Sprint("key-", i), streamFact("n", i))
			if err != nil {
				t.Errorf("append %d: %v", i, err)
				return
			}
			all[i] = got[0]
		})
	}
	group.Wait()
	slices.SortFunc(all, func(a, b client.Appended) int { return int(a.EventID - b.EventID) })
	for i, e := range all {
		if e.Sequence != int64(i+1) {
			t.Fatalf("event %d in the journal's order has the sequence %d", i+1, e.Sequence)
		}
	}
	events, err := clients[0].ReadStream(t.Context(), client.StreamQuery{
		Stream: "one / stream", Consumer: streamConsumer, Name: "n", Limit: 1000,
	})
	if err != nil || len(events) != n {
		t.Fatalf("a consumer reads %d events, %v, want %d", len(events), err, n)
	}
	for i, e := range events {
		if e.Event.ID != all[i].ID || e.EventID != all[i].EventID {
			t.Fatalf("event %d is %s, want %s", i, e.Event.ID, all[i].ID)
		}
	}
}

// TestProducersRaceForAStream: of 20 producers that begin a stream at once, one owns it; the others get a 423, and no event
// of theirs is stored.
func TestProducersRaceForAStream(t *testing.T) {
	t.Parallel()
	places := map[string]func(*testing.T) []*client.Client{
		"one place": func(t *testing.T) []*client.Client { return []*client.Client{dial(t, served(t))} },
	}
	if os.Getenv(deployment) == "" {
		places["two processes on DynamoDB"] = func(t *testing.T) []*client.Client { return onDynamo(t, 2) }
	}
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients := open(t)
			var group sync.WaitGroup
			errs := make([]error, 20)
			for i := range errs {
				group.Go(func() {
					producer := fmt.Sprintf("2480b859-e08a-4414-9c7d-%012d", i)
					_, errs[i] = clients[i%len(clients)].AppendToStream(t.Context(), producer, "s", fmt.Sprint("race-", i), streamFact("n", i))
				})
			}
			group.Wait()
			owners := 0
			for i, err := range errs {
				refused, ok := errors.AsType[*client.Error](err)
				switch {
				case err == nil:
					owners++
				case !ok || refused.Status != 423 || refused.Code != "locked":
					t.Errorf("producer %d: %v, want 423", i, err)
				}
			}
			events, err := clients[0].ReadStream(t.Context(), client.StreamQuery{Stream: "s", Consumer: streamConsumer})
			if owners != 1 || err != nil || len(events) != 1 || events[0].Sequence != 1 {
				t.Errorf("%d owners, %d events, %v, want one of each", owners, len(events), err)
			}
		})
	}
}

// TestStreamOutlivesKill: after kill -9 between any two calls, an append that is repeated under its key is there once, and a
// consumer goes on where it was.
func TestStreamOutlivesKill(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t))
	c := dial(t, s)
	const n = 12
	for i := range n {
		key := fmt.Sprint("key-", i)
		first, err := c.AppendToStream(t.Context(), streamOwner, "s", key, streamFact("n", i))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		again, err := c.AppendToStream(t.Context(), streamOwner, "s", key, streamFact("n", i))
		if err != nil || again[0] != first[0] || first[0].Sequence != int64(i+1) {
			t.Fatalf("again: %v, %v, want %v", again, err, first)
		}
		events, err := c.ReadStream(t.Context(), client.StreamQuery{Stream: "s", Consumer: streamConsumer})
		if err != nil || len(events) != 1 {
			t.Fatalf("read %d events, %v, want the one that is new", len(events), err)
		}
		if offset, err := c.Acknowledge(t.Context(), streamConsumer, "s", events[0].Event.ID); err != nil || offset != int64(i+1) {
			t.Fatalf("acknowledge = %d, %v, want %d", offset, err, i+1)
		}
	}
}

// TestStreamCommands goes through what a producer and a consumer do on the command line.
func TestStreamCommands(t *testing.T) {
	t.Parallel()
	env := append(environment(served(t)), "XDG_CONFIG_HOME="+t.TempDir())
	do := func(status int, says string, args ...string) result {
		t.Helper()
		r := command(t, env, "", args...)
		if r.status != status || !strings.Contains(r.out+r.err, says) {
			t.Fatalf("millrace %q: %+v, want %d with %q", args, r, status, says)
		}
		return r
	}
	const name = "my / orders"
	do(0, "Order was placed 1", "stream", "append", name, "Order was placed", "order=17", "total:=12.5")
	do(0, "Order was placed 2", "stream", "append", name, "Order was placed")
	do(4, "another producer's", "stream", "append", "--id-file", t.TempDir()+"/id", name, "Order was placed")
	first, _, _ := strings.Cut(do(0, `{"order":"17","total":12.5}`, "stream", "read", name, "-n", "1").out, " ")
	do(0, "1", "stream", "ack", name, first)
	do(0, "Order was placed 2", "stream", "read", name, "--ack")
	do(0, "100 %", "consumer", "list", name)
	do(0, "", "stream", "replay", name, "Order was placed", "1")
	do(0, "Order was placed 2", "stream", "read", name)
	do(1, "beyond", "stream", "replay", name, "Order was placed", "3")
	do(0, name, "stream", "list")
	do(0, "Order was placed 2", "stream", "tail", name, "--after", "0", "-n", "2")
	do(3, "no stream", "stream", "read", "none")
}
