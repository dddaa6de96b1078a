package beside_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/beside"
)

// What is begun has its result for all who wait for it.
func TestBegin(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	gate := make(chan struct{})
	wait := beside.Begin(&group, func() int {
		<-gate
		return 7
	})
	close(gate)
	for range 2 {
		if got := wait(); got != 7 {
			t.Errorf("the result is %d, want 7", got)
		}
	}
	group.Wait()
}

// A panic is that of whoever waits, and ends no process.
func TestAPanicIsThatOfWhoWaits(t *testing.T) {
	t.Parallel()
	want := errors.New("broken")
	var group sync.WaitGroup
	wait := beside.Begin(&group, func() int { panic(want) })
	group.Wait()
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, want) {
			t.Errorf("it panics with %v, want %v", err, want)
		}
	}()
	wait()
}
