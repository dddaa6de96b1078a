// Package beside begins what a caller needs later beside what it goes on with.
//
// It imports the standard library.
package beside

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// panicked is what a function has panicked with in a goroutine of its own.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string {
	return fmt.Sprintf("%v\n\nin what was begun beside:\n%s", p.value, p.stack)
}

// Unwrap returns the value, if it is an error.
func (p *panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Begin runs do in a goroutine of its own, as one of group, and returns a function that waits for its result, as often as it is called. If do
// panics, that function does; a panic that nobody waits for is lost.
func Begin[T any](group *sync.WaitGroup, do func() T) (wait func() T) {
	var result T
	var failed *panicked
	done := make(chan struct{})
	group.Go(func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				failed = &panicked{value, debug.Stack()}
			}
		}()
		result = do()
	})
	return func() T {
		<-done
		if failed != nil {
			panic(failed)
		}
		return result
	}
}
