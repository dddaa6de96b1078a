package fileorder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store/memory"
)

var errKilled = errors.New("killed")

// mortal are orders whose process ends at a call, before or after it has taken effect.
type mortal struct {
	fileorder.Orders
	before bool

	mu   sync.Mutex // calls of several files may come at once
	left int
}

func (m *mortal) call(do func() error) error {
	m.mu.Lock()
	m.left--
	left := m.left
	m.mu.Unlock()
	if left < 0 || left == 0 && m.before {
		return errKilled
	}
	if err := do(); err != nil {
		return err
	}
	if left == 0 {
		return errKilled
	}
	return nil
}

func (m *mortal) Add(ctx context.Context, once *journal.Idempotency, r order.Request) (added order.Added, err error) {
	err = m.call(func() error { added, err = m.Orders.Add(ctx, once, r); return err })
	return added, err
}

func (m *mortal) MarkFile(ctx context.Context, u order.Unfiled, mark string) (counts string, err error) {
	err = m.call(func() error { counts, err = m.Orders.MarkFile(ctx, u, mark); return err })
	return counts, err
}

func (m *mortal) Filed(ctx context.Context, u order.Unfiled, away bool) (finished bool, err error) {
	err = m.call(func() error { finished, err = m.Orders.Filed(ctx, u, away); return err })
	return finished, err
}

// Whatever call of a file's life the process dies at, the file has one order, and ends in the other directory; a second file that
// comes under its name while the server is away has an order of its own, once the first one was moved.
func TestAProcessThatDiesNeitherLosesNorDoublesAFile(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 3; at++ { // adding, marking, finishing
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("call %d, before %v", at, before), func(t *testing.T) {
				t.Parallel()
				b := setup(t, memory.New(memory.Options{}), nil)
				b.write("a.csv", "first", 0)
				b.restart(&mortal{Orders: b.orders, left: at, before: before})
				died := b.live()
				if !died {
					t.Fatal("the process did not die")
				}
				want := 1
				if _, err := os.Stat(filepath.Join(b.in, "a.csv")); err != nil {
					b.write("a.csv", "another", 0)
					want = 2
				}
				b.restart(b.orders)
				b.live()
				events := b.events()
				if added, finished := strings.Count(events, "OrderAdded"), strings.Count(events, "OrderFinished"); added != want || finished != want {
					t.Errorf("%d orders were added, %d have finished, want %d: %s", added, finished, want, events)
				}
				b.holds(b.in)
				b.holds(b.out, "a.csv")
			})
		}
	}
}

// live looks at the directory and runs steps for some time, or until the process dies.
func (b *bench) live() (died bool) {
	b.t.Helper()
	for range 20 {
		for more := true; more; {
			var err error
			if more, err = b.Pass(b.t.Context()); errors.Is(err, errKilled) {
				return true
			} else if err != nil {
				b.t.Fatal(err)
			}
		}
		b.run()
		b.now = b.now.Add(2e9)
	}
	return false
}
