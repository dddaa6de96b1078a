package e2e_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
	"github.com/millrace/millrace/tests/witness"
)

// TestKillUnderLoad kills the server with signal 9 again and again while emitters append and followers read: every
// acknowledged event is there once and in order, and followers go on by themselves (complete followers, acknowledged once).
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	s := serve(t, embedded(t))
	underLoad(t, s, rounds, func() {
		if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
}

// underLoad has something break again and again while emitters append and followers read, and judges what they were told.
func underLoad(t *testing.T, s *process.Server, rounds int, breaks func()) {
	t.Helper()
	followers := everyWay()
	follow(t, s, followers...)
	l := load(t, s, 8)
	for range rounds {
		l.await(t, l.witness.Count()+20+rand.N(300))
		breaks()
	}
	l.end()
	judge(t, &l.witness, l.doubted, followers...)

	journal := slices.DeleteFunc(readAll(t, dial(t, s)), ofServer)
	doubtful := 0
	for _, e := range journal {
		if l.doubted(e) {
			doubtful++
		}
	}
	t.Logf("%d breaks, %d events acknowledged, %d appends without an answer of which %d had landed",
		rounds, l.witness.Count(), len(l.doubts), doubtful)
	if keys := keysOf(journal); len(slices.Compact(keys)) != len(journal) {
		t.Error("an event is on the journal twice")
	}
}

// TestStopUnderLoad: a server that is told to stop exits with status 0 under load too, and what it acknowledged is there.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, embedded(t))
	followers := everyWay()
	follow(t, s, followers...)
	l := load(t, s, 8)
	for range 3 {
		l.await(t, l.witness.Count()+100)
		if err := errors.Join(s.Stop(), s.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	l.end()
	judge(t, &l.witness, l.doubted, followers...)
}

// loading is emitters at work: of each two, one repeats an append that got no response, with its Idempotency-Key, and one has
// no key and does not repeat it.
type loading struct {
	witness witness.Witness
	cancel  context.CancelFunc
	group   sync.WaitGroup

	mu     sync.Mutex
	doubts map[string]bool // keys of events whose append got no response
}

func load(t *testing.T, s *process.Server, emitters int) *loading {
	ctx, cancel := context.WithCancel(t.Context())
	l := &loading{cancel: cancel, doubts: map[string]bool{}}
	patient := dial(t, s)
	careless, err := s.Client(client.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.end)
	for writer := range emitters {
		l.group.Go(func() {
			if writer%2 == 0 {
				l.emit(ctx, t, patient, writer)
			} else {
				l.emit(ctx, t, careless, writer)
			}
		})
	}
	return l
}

// emit appends until ctx ends, in batches of 1 to 3.
func (l *loading) emit(ctx context.Context, t *testing.T, c *client.Client, writer int) {
	for n := 0; ctx.Err() == nil; n += 3 {
		batch := []event.Event{made(writer, n), made(writer, n+1), made(writer, n+2)}[:1+n%2+n%3]
		ids, err := c.Emit(context.WithoutCancel(ctx), batch)
		switch {
		case err == nil:
			l.witness.Acknowledged(batch, ids)
		case client.Temporary(err):
			l.doubt(batch)
			<-time.After(5 * time.Millisecond) // else the emitters without a key keep the machine from starting the server
		default:
			t.Errorf("emit: %v", err)
			return
		}
	}
}

func (l *loading) doubt(events []event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.doubts[e.Key.Path] = true
	}
}

// doubted reports whether it is not known if the event was appended.
func (l *loading) doubted(e event.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doubts[e.Key.Path]
}

// await waits until so many events are acknowledged.
func (l *loading) await(t *testing.T, count int) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for l.witness.Count() < count {
		if time.Now().After(deadline) {
			t.Fatalf("%d events acknowledged after three minutes, want %d", l.witness.Count(), count)
		}
		<-time.After(time.Millisecond)
	}
}

// end stops the emitters and waits for them.
func (l *loading) end() {
	l.cancel()
	l.group.Wait()
}

// readAll reads the whole journal.
func readAll(t *testing.T, c *client.Client) []event.Event {
	t.Helper()
	var all []event.Event
	for q := (client.Query{}); ; {
		answer, err := c.Read(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Events) == 0 {
			return all
		}
		all = append(all, answer.Events...)
		q.After = answer.Last
	}
}

// newest returns the id of the newest event.
func newest(t *testing.T, c *client.Client) event.ID {
	t.Helper()
	answer, err := c.Read(t.Context(), client.Query{Limit: -1})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Last
}

func keysOf(events []event.Event) []string {
	keys := make([]string, len(events))
	for i := range events {
		keys[i] = events[i].Key.Path
	}
	slices.Sort(keys)
	return keys
}
