package membership_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// slow is a shared store some of whose ranges take a second to be read.
type slow struct {
	shared
	partition string // how the names of their partitions begin
	under     atomic.Int64
}

// Query reads a range.
func (s *slow) Query(ctx context.Context, r store.Range) (store.Page, error) {
	s.under.Add(1)
	defer s.under.Add(-1)
	if strings.HasPrefix(r.Partition, s.partition) {
		time.Sleep(time.Second) // of virtual time
	}
	return s.shared.Query(ctx, r)
}

// What a claim has begun to read has ended when it returns, whether it needed it or not: in a function that is frozen between its calls,
// it would go on with the next one, at the cost of that.
func TestAClaimLeavesNoReadsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{shared: shared{memory.New(memory.Options{})}, partition: "ready/main"}
		d := openWith(t, s, &clock{time.Now()}, queues{definition.Queue{Name: "first", Topics: []string{"o/*"}}})
		i := d.register("one", "/topics/**")
		d.add("o/a", 4)
		d.add("other", 1)
		for claim := range 4 {
			d.claim(i, 1) // from one queue, while that of the other has been read too
			if n := s.under.Load(); n != 0 {
				t.Errorf("%d reads are under way after claim %d", n, claim+1)
			}
		}
	})
}

// Where lines are read beside what has fallen due, a task that falls due is still among those that the claim chooses from.
func TestWhatIsReadEarlyHasWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := &clock{began}
		d := open(t, &slow{shared: shared{memory.New(memory.Options{})}, partition: "due"}, c)
		d.Queue = queue.Open(queue.Options{Store: d.meter, Journal: d.journal, Definitions: nothing{}, Now: c.now, OnePart: true})
		i := d.register("one", "/topics/*")
		d.add("work", 3)
		urgent := queue.New{Dialect: task.Job, Job: queue.TopicPath("work"), Priority: 1, NotBefore: c.at.Add(10 * time.Second)}
		added, err := d.Enqueue(t.Context(), nil, urgent)
		if err != nil {
			t.Fatal(err)
		}
		until := func(d time.Duration) {
			time.Sleep(time.Until(began.Add(d))) // of virtual time
			c.at = time.Now()
		}
		until(8500 * time.Millisecond)
		d.claim(i, 1) // from then on the line is known
		until(10 * time.Second)
		if got := d.claim(i, 1); len(got) != 1 || got[0].Task.ID != added.Tasks[0].Task.ID {
			t.Errorf("claimed %v, want the urgent task, which has just fallen due", got)
		}
	})
}
