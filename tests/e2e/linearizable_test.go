package e2e_test

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/tests/containers"
)

// TestLinearizable: histories of concurrent appends and reads are those of one log that does one thing after the other, on
// both stores, with one process and with several.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	t.Run("pebble", func(t *testing.T) {
		t.Parallel()
		s, err := pebble.Open(t.TempDir()+"/store", pebble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		linearizable(t, s, 1, 200)
	})
	t.Run("dynamodb", func(t *testing.T) {
		t.Parallel()
		linearizable(t, containers.Dynamo(t), 3, 12)
	})
}

// linearizable runs writers and readers on journals of several processes over one store, and checks the history.
func linearizable(t *testing.T, s store.Store, processes, each int) {
	t.Helper()
	h := &history{began: time.Now()}
	journals := make([]*journal.Journal, processes)
	for i := range journals {
		journals[i] = journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer journals[i].Close()
	}
	var group sync.WaitGroup
	const writers, readers = 4, 4
	for client := range writers + readers {
		j := journals[client%processes]
		group.Go(func() {
			for n := range each {
				if client < writers {
					h.append(t, j, client, n)
				} else {
					h.read(t, j, client, n)
				}
			}
		})
	}
	group.Wait()
	if got := porcupine.CheckOperationsTimeout(oneLog(), h.operations, time.Minute); got != porcupine.Ok {
		t.Errorf("the history of %d operations is %s, want it linearizable", len(h.operations), got)
	}
}

// history is the calls of clients, their results, and when they began and ended.
type history struct {
	began      time.Time
	mu         sync.Mutex
	operations []porcupine.Operation
}

// asked is the input of an operation: an append, or a read of the whole log.
type asked struct{ appends bool }

// span is what an append made or a read found: so many events up to the last one.
type span struct {
	count int
	last  event.ID
	sum   event.ID // of the ids, so that two journals that differ inside differ here too
}

func (s span) with(id event.ID) span {
	return span{s.count + 1, id, s.sum + id%math.MaxInt32*event.ID(s.count+1)}
}

// note runs an operation and keeps what came of it.
func (h *history) note(client int, in asked, run func() span) {
	call := time.Since(h.began)
	out := run()
	op := porcupine.Operation{ClientId: client, Input: in, Call: call.Nanoseconds(), Output: out, Return: time.Since(h.began).Nanoseconds()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, op)
}

func (h *history) append(t *testing.T, j *journal.Journal, client, n int) {
	h.note(client, asked{appends: true}, func() span {
		receipt, err := j.Emit(t.Context(), []event.Event{{Type: "Made", Key: event.Key{Path: "/" + strconv.Itoa(client)}}}, nil)
		if err != nil {
			t.Errorf("append %d of %d: %v", n, client, err)
		}
		return span{last: receipt.FirstID}
	})
}

func (h *history) read(t *testing.T, j *journal.Journal, client, n int) {
	h.note(client, asked{}, func() span {
		answer, err := j.ReadAfter(t.Context(), journal.Request{})
		if err != nil {
			t.Errorf("read %d of %d: %v", n, client, err)
		}
		var found span
		for i := range answer.Events {
			found = found.with(answer.Events[i].ID)
		}
		return found
	})
}

// oneLog is the model: an append puts an event behind all others, with a higher id; a read finds all of them.
func oneLog() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return span{} },
		Step: func(state, input, output any) (bool, any) {
			log, out := state.(span), output.(span)
			if input.(asked).appends {
				return out.last > log.last, log.with(out.last)
			}
			return out == log, log
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
	}
}

// TestModelRefuses: the check above would notice an event that a read misses, or that comes too early.
func TestModelRefuses(t *testing.T) {
	t.Parallel()
	first := porcupine.Operation{ClientId: 0, Input: asked{appends: true}, Call: 0, Output: span{last: 7}, Return: 10}
	for name, second := range map[string]porcupine.Operation{
		"stale read":      {ClientId: 1, Input: asked{}, Call: 11, Output: span{}, Return: 20},
		"lower id":        {ClientId: 1, Input: asked{appends: true}, Call: 11, Output: span{last: 6}, Return: 20},
		"invented events": {ClientId: 1, Input: asked{}, Call: 11, Output: span{}.with(7).with(8), Return: 20},
	} {
		if porcupine.CheckOperations(oneLog(), []porcupine.Operation{first, second}) {
			t.Errorf("%s: the model finds it linearizable", name)
		}
	}
}
