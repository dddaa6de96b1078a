package exchanges_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
)

// An exchange that waits in one process claims nothing any more once a later one, or its own repetition, was made in another: nobody
// would read of it.
func TestAnExchangeElsewhereFencesAWait(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]struct {
		seq  int64
		want error
	}{"a later one": {2, exchanges.ErrOld}, "its repetition": {1, exchanges.ErrReplaced}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := shared(t)
				here, there := open(t, s), open(t, s)
				id := here.register(t, 5)
				left := make(chan error, 1)
				go func() {
					got, err := here.Exchange(t.Context(), id, exchanges.Request{Seq: 1, Max: 5, Wait: 20 * time.Second, Explain: explain})
					if len(got.Claims) > 0 {
						t.Errorf("claims = %v", got.Claims)
					}
					left <- err
				}()
				synctest.Wait()
				waits := make(chan exchanges.Response, 1)
				go func() { waits <- there.must(t, id, exchanges.Request{Seq: with.seq, Wait: 10 * time.Second}) }()
				synctest.Wait()
				ids := here.add(t, 2) // in the process of the first, which is woken
				if err := <-left; !errors.Is(err, with.want) {
					t.Errorf("the first exchange = %v, want %v", err, with.want)
				}
				if got := <-waits; len(got.Claims) > 0 {
					t.Errorf("an exchange that wants nothing has claimed %v", got.Claims)
				}
				got := there.must(t, id, exchanges.Request{Seq: 3, Max: 5})
				there.must(t, id, exchanges.Request{Seq: 4, Results: ok(tokensOf(got.Claims)...)})
				finished(t, there, ids)
			})
		})
	}
}

// A result is written with the record or not at all: where another process has written the record, nothing of an older exchange is.
func TestAnExchangeElsewhereFencesResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared(t)
		there := open(t, s)
		id := there.register(t, 5)
		ids := there.add(t, 2)
		tokens := tokensOf(there.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims)
		slow := &held{Store: s, at: make(chan struct{}), on: make(chan struct{})}
		here := open(t, slow)
		left := make(chan error, 1)
		go func() {
			failed := ok(tokens...)
			failed[0].Result.Outcome, failed[1].Result.Outcome = "failed", "failed"
			_, err := here.Exchange(t.Context(), id, exchanges.Request{Seq: 2, Results: failed, Explain: explain})
			left <- err
		}()
		<-slow.at // it is about to write its results
		there.must(t, id, exchanges.Request{Seq: 3})
		close(slow.on)
		if err := <-left; !errors.Is(err, exchanges.ErrOld) {
			t.Errorf("the older exchange = %v, want that there is a later one", err)
		}
		there.must(t, id, exchanges.Request{Seq: 4, Results: ok(tokens...)})
		finished(t, there, ids)
	})
}

// An exchange that is repeated while its first request is still under way in another process returns the same there and here.
func TestTheSameExchangeInTwoProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared(t)
		there := open(t, s)
		id := there.register(t, 5)
		ids := there.add(t, 2)
		tokens := tokensOf(there.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims)
		ids = append(ids, there.add(t, 1)...)
		slow := &held{Store: s, at: make(chan struct{}), on: make(chan struct{})}
		here := open(t, slow)
		r := exchanges.Request{Seq: 2, Results: ok(tokens...), Max: 5, Explain: explain}
		first := make(chan exchanges.Response, 1)
		go func() { first <- here.must(t, id, r) }()
		<-slow.at // it is about to write its results
		again := there.must(t, id, r)
		close(slow.on)
		got := <-first
		compare(t, &again, &got)
		if len(got.Claims) != 1 || got.Results[0].State != "SUCCEEDED" {
			t.Errorf("claims = %v, results = %+v", got.Claims, got.Results)
		}
		there.must(t, id, exchanges.Request{Seq: 3, Results: ok(tokensOf(again.Claims)...)})
		finished(t, there, ids)
	})
}
