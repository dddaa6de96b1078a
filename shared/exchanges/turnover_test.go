package exchanges_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// counted counts the writes of a store that one process has to itself that change tasks or records of exchanges.
type counted struct {
	store.Store
	writes atomic.Int32
}

func (c *counted) Write(ctx context.Context, w store.Write) error {
	if slices.ContainsFunc(w.Ops, changes) {
		c.writes.Add(1)
	}
	return c.Store.Write(ctx, w)
}

func changes(op store.Op) bool {
	return strings.HasPrefix(op.Item.Key.Partition, "exchange/") || strings.HasPrefix(op.Item.Key.Partition, "task/")
}

// writesOf returns how many writes something makes.
func (c *counted) writesOf(do func()) int {
	before := c.writes.Load()
	do()
	return int(c.writes.Load() - before)
}

func newCounted() *counted { return &counted{Store: memory.New(memory.Options{})} }

// An instance of one slot that tells the end of a task gets the next in the same write, whether another instance waits or not.
func TestAnEndAndTheNextStartAreOneWrite(t *testing.T) {
	t.Parallel()
	s := newCounted()
	p := open(t, s)
	id := p.register(t, 1)
	ids := p.add(t, 4)
	next := p.must(t, id, exchanges.Request{Seq: 1, Max: 1}).Claims
	for seq := int64(2); len(next) > 0; seq++ {
		var got exchanges.Response
		writes := s.writesOf(func() { got = p.must(t, id, exchanges.Request{Seq: seq, Max: 1, Results: ok(tokensOf(next)...)}) })
		if writes != 1 || len(got.Results) != 1 || got.Results[0].State != "SUCCEEDED" {
			t.Errorf("exchange %d: %d writes, results %+v, want one write", seq, writes, got.Results)
		}
		again := p.must(t, id, exchanges.Request{Seq: seq, Max: 1, Results: ok(tokensOf(next)...)})
		compare(t, &got, &again)
		next = got.Claims
	}
	finished(t, p, ids)
}

// What an end makes ready is started before what was ready behind it: then the end is written first.
func TestAnEndThatMakesATaskReadyIsWrittenBeforeTheNextStart(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		p := open(t, s)
		id := p.register(t, 2)
		for range 2 {
			n := queue.New{Job: "/topics/a", Attempts: 1, Priority: 9, Concurrency: &task.Concurrency{Key: "k", Limit: 1}}
			if _, err := p.queue.Enqueue(t.Context(), nil, n); err != nil {
				t.Fatal(err)
			}
		}
		first := p.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims
		p.add(t, 1)
		got := p.must(t, id, exchanges.Request{Seq: 2, Max: 1, Results: ok(tokensOf(first)...)})
		if len(got.Claims) != 1 || got.Claims[0].Task.Priority != 9 {
			t.Errorf("claims = %+v, want the one that waited for the key", got.Claims)
		}
	})
}
