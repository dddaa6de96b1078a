package membership_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// slow is a shared store whose lines of ready tasks take a second to be read.
type slow struct {
	shared
	under atomic.Int64
}

// Query reads a range.
func (s *slow) Query(ctx context.Context, r store.Range) (store.Page, error) {
	s.under.Add(1)
	defer s.under.Add(-1)
	if strings.HasPrefix(r.Partition, "ready/") {
		time.Sleep(time.Second)
	}
	return s.shared.Query(ctx, r)
}

// What a claim has begun to read has ended when it returns, whether it needed it or not: in a function that is frozen between its calls,
// it would go on with the next one, at the cost of that.
func TestAClaimLeavesNoReadsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{shared: shared{memory.New(memory.Options{})}}
		ordered := definition.Queue{Name: "ordered", Topics: []string{"o/*"}, Type: definition.Ordered}
		d := openWith(t, s, &clock{time.Now()}, queues{ordered})
		i := d.register("one", "/topics/**")
		d.add("o/a", 1)
		d.add("o/b", 1)
		for claim := range 4 {
			d.claim(i, 2) // one task is started at the first; its queue has no room for another
			if n := s.under.Load(); n != 0 {
				t.Errorf("%d reads are under way after claim %d", n, claim+1)
			}
		}
	})
}
