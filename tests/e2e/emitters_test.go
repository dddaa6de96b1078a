package e2e_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/witness"
)

// TestManyEmitters: 16 emitters append 200 events each; ids strictly rise for every follower, whatever its page size, and
// none misses anything (rising ids, complete followers, acknowledged once).
func TestManyEmitters(t *testing.T) {
	t.Parallel()
	emitters, each := 16, 200
	if os.Getenv(deployment) != "" {
		emitters, each = 4, 10 // each page of each follower is an invocation
	}
	s := served(t)
	c := dial(t, s)
	followers := everyWay()
	for _, f := range followers {
		f.query.After = newest(t, c)
	}
	follow(t, s, followers...)
	var w witness.Witness
	var group sync.WaitGroup
	for writer := range emitters {
		group.Go(func() {
			last := event.ID(0)
			for n := range each {
				events := []event.Event{made(writer, n)}
				ids, err := c.Emit(t.Context(), events)
				if err != nil {
					t.Errorf("emit: %v", err)
					return
				}
				if ids[0] <= last {
					t.Errorf("emitter %d got %d after %d", writer, ids[0], last)
				}
				last = ids[0]
				w.Acknowledged(events, ids)
			}
		})
	}
	group.Wait()
	if got := w.Count(); got != emitters*each {
		t.Fatalf("%d events were acknowledged, want %d", got, emitters*each)
	}
	judge(t, &w, nothing, followers...)
}

// TestWaitingFollowerIsWoken: a follower that waits gets the event from its one long poll.
func TestWaitingFollowerIsWoken(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t, embedded(t)))
	now := newest(t, c)
	got := make(chan client.Answer, 1)
	asked := make(chan struct{})
	go func() {
		close(asked)
		answer, err := c.Read(t.Context(), client.Query{After: now, Wait: time.Minute})
		if err != nil {
			t.Errorf("read: %v", err)
		}
		got <- answer
	}()
	<-asked
	ids, err := c.Emit(t.Context(), []event.Event{made(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second) // less than its poll would wait
	defer cancel()
	select {
	case answer := <-got:
		if len(answer.Events) != 1 || answer.Events[0].ID != ids[0] {
			t.Errorf("got %v, want event %d", answer.Events, ids[0])
		}
	case <-ctx.Done():
		t.Error("the follower was not woken within 40 s")
	}
}
