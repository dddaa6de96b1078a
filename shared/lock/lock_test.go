package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever waits for a name leaves with its context, and nothing is kept of a name that nobody holds or waits for.
func TestAKeyedMutexKeepsNobodyAndNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var k Keyed
		unlock, err := k.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := k.Lock(t.Context(), "b") // names do not wait for each other
		if err != nil {
			t.Fatal(err)
		}
		other()
		brief, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := k.Lock(brief, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("lock = %v while the name is held, want %v", err, context.DeadlineExceeded)
		}
		next := make(chan struct{})
		go func() {
			defer close(next)
			unlock, err := k.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			unlock()
		}()
		synctest.Wait()
		unlock()
		<-next
		if len(k.locks) != 0 {
			t.Errorf("%d names are kept that nobody holds", len(k.locks))
		}
	})
}
