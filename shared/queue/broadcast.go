package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
)

// broadcast tells other processes of tasks for instances. Instances wait in the process that holds their request: if none waits in the
// one that makes a task ready, and the notifier reaches all processes, those in which some wait need not look first.
//
// Of a line the others are told at once, and then together of what becomes ready within broadcastApart: a line whose instances are all
// busy costs no notification for each task.
type broadcast struct {
	q  *Queue
	to notifier.Broadcaster // nil: the others look each second

	mu     sync.Mutex
	lately map[string]int // by line: how many tasks have become ready since the others were told
}

// broadcastApart is how long at least there is between two notifications of all processes of one line.
const broadcastApart = 50 * time.Millisecond

// begin begins to hear what other processes tell.
func (b *broadcast) begin(q *Queue, n notifier.Notifier) {
	b.q, b.lately = q, map[string]int{}
	if to, ok := n.(notifier.Broadcaster); ok {
		b.to = to
		to.Hear(func(notices []notifier.Notice) { go b.heard(notices) })
	}
}

// heard wakes instances for what another process tells: their claims know the lines, new ones too.
func (b *broadcast) heard(notices []notifier.Notice) {
	lines := make([]layout.Line, len(notices))
	for i, n := range notices {
		lines[i] = layout.ParseLine(n.Queue)
	}
	b.q.known.Know(lines...)
	b.q.waiters.hear(notices, b.q.now())
}

// tell tells the other processes of tasks that are ready, a notice for each.
func (b *broadcast) tell(ctx context.Context, notices []notifier.Notice) {
	if b.to == nil || len(notices) == 0 {
		return
	}
	var at []notifier.Notice
	b.mu.Lock()
	for _, n := range notices {
		since, told := b.lately[n.Queue]
		now := slices.ContainsFunc(at, func(other notifier.Notice) bool { return other.Queue == n.Queue })
		switch {
		case told && !now:
			b.lately[n.Queue] = since + 1
			continue
		case !told:
			b.lately[n.Queue] = 0
			time.AfterFunc(broadcastApart, func() { b.again(n.Queue) })
		}
		at = append(at, notifier.Notice{Queue: n.Queue})
	}
	b.mu.Unlock()
	b.send(ctx, at)
}

// again tells of what has become ready in a line since the others were told.
func (b *broadcast) again(line string) {
	b.mu.Lock()
	since := b.lately[line]
	if since > 0 {
		b.lately[line] = 0
		time.AfterFunc(broadcastApart, func() { b.again(line) })
	} else {
		delete(b.lately, line)
	}
	b.mu.Unlock()
	b.send(context.Background(), slices.Repeat([]notifier.Notice{{Queue: line}}, min(since, mostNotices)))
}

func (b *broadcast) send(ctx context.Context, notices []notifier.Notice) {
	if len(notices) == 0 {
		return
	}
	if err := b.to.Broadcast(context.WithoutCancel(ctx), notices...); err != nil && !errors.Is(err, notifier.ErrClosed) {
		b.q.log.Warn("other processes were not told of tasks for instances; they look each second", "error", err)
	}
}
