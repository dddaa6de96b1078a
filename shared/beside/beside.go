// Package beside begins what a caller needs later beside what it goes on with.
//
// It imports the standard library.
package beside

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Panicked is what a function has panicked with. It is an error, so that it may be panicked with once more where its caller is.
type Panicked struct {
	value any
	stack []byte
}

// Catch calls do, and returns what it panics with; nil if it does not.
func Catch(do func()) (p *Panicked) {
	defer func() {
		if value := recover(); value != nil {
			p = &Panicked{value, debug.Stack()}
		}
	}()
	do()
	return nil
}

// Error returns the value and where it came from: another goroutine, perhaps.
func (p *Panicked) Error() string {
	return fmt.Sprintf("%v\n\nfirst in:\n%s", p.value, p.stack)
}

// Unwrap returns the value if it is an error.
func (p *Panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Begin runs do in a goroutine of its own, as one of group, and returns a function that waits for its result, as often as it is called. If do
// panics, that function does; a panic that nobody waits for is lost.
func Begin[T any](group *sync.WaitGroup, do func() T) (wait func() T) {
	var result T
	var failed *Panicked
	done := make(chan struct{})
	group.Go(func() {
		defer close(done)
		failed = Catch(func() { result = do() })
	})
	return func() T {
		<-done
		if failed != nil {
			panic(failed)
		}
		return result
	}
}
