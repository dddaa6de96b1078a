package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// Where several processes claim much from a line of several parts, they share the parts out among themselves: a claim takes entries of
// its process's share, as long as some wait there. So claims of different processes rarely contend for the same entries, hardly need
// marks, and can read ahead (shared_reserve.go). The signpost says among which processes; each renews its own place there. Where they
// are more than the parts, all claim as if nothing were shared out.
//
// A share is a hint, as a mark is: the condition on a task's item decides who starts it. What lies in the share of a process that has ended
// or claims no more is claimed by the others as soon as they have nothing of their own, and by all when it has not renewed its place.

const (
	// sharedAt is how many tasks that a process claims from a line a second are worth that it shares the line out with others. Where it
	// claims fewer, what it leaves to others would wait for long, and they for what lies in its share.
	sharedAt = 60

	// stays is of how many times fewer tasks it is worth to take part where others do: who does not contends with those for the same ones.
	stays = 6

	// renewEach is how often, in microseconds, a process renews its place among those that share a line out.
	renewEach = 1_000_000

	// backlog is how many entries wait in a share that is claimed from without marks, and read ahead.
	backlog = 8
)

// shareOf returns the parts of a line that this process claims from, and those of other processes; none if the line is not shared out, or
// this process does not take part.
func (p *parts) shareOf(l layout.Line) (mine, others []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, now := p.lines[l], p.q.micro()
	if k == nil || now-k.read >= layout.SharedFor.Microseconds() || now < k.read {
		return nil, nil
	}
	sharers := k.post.Sharing(now)
	at := slices.IndexFunc(sharers, p.isMe)
	if at < 0 || len(sharers) > k.post.Read {
		return nil, nil
	}
	for i, part := range layout.ReadyParts(l, k.post.Read) {
		if i%len(sharers) == at {
			mine = append(mine, part)
		} else {
			others = append(others, part)
		}
	}
	return mine, others
}

// takesPart reports whether this process has lately entered itself among those that share a line out.
func (p *parts) takesPart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.micro() < p.sharing
}

func (p *parts) isMe(s layout.Sharer) bool { return s.ID == p.q.process }

// picked counts entries that claims have found in a line.
func (p *parts) picked(l layout.Line, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(l).picked.Add(p.q.micro(), n)
}

// takePart enters this process among those that share a line out, or renews its place, if the time for that has come. It is worth it for a
// process that claims much where claims meet often, and then as long as others take part.
func (p *parts) takePart(ctx context.Context, queue string, l layout.Line) {
	if !p.begins(l, p.q.crowds.contended(queue, p.q.micro())) {
		return
	}
	enter := func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), behindFor)
		defer done()
		err := p.enter(ctx, l)
		if err != nil {
			p.q.log.Warn("a line is not shared out", "line", l.String(), "error", err)
		}
		p.ends(l, err != nil)
	}
	if p.q.lasting {
		p.q.behind.do(enter)
	} else {
		enter()
	}
}

// begins reports whether this process is to enter itself now; ends must be called then.
func (p *parts) begins(l layout.Line, contended bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, now := p.line(l), p.q.micro()
	if k.joining || k.post.Read < 2 || now < k.again && now >= k.again-renewEach || now < k.read { // the clock may have been set back
		return false
	}
	sharers := k.post.Sharing(now)
	at, enough := slices.IndexFunc(sharers, p.isMe), p.share
	if len(sharers) > 0 {
		enough /= stays
	}
	switch {
	case k.picked.PerSecond(now) < enough:
	case at < 0:
		k.joining = (contended || len(sharers) > 0) && len(sharers) <= k.post.Read // one more than there are parts says that there are too many
	case contended || len(sharers) > 1:
		k.joining = sharers[at].Until <= now+layout.SharedFor.Microseconds()-renewEach
	}
	return k.joining
}

func (p *parts) ends(l layout.Line, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.line(l)
	if k.joining = false; failed {
		k.again = p.q.micro() + renewEach/4
	}
}

// enter writes this process's place into a line's signpost. If another is quicker, the next claim tries it again.
func (p *parts) enter(ctx context.Context, l layout.Line) error {
	began := p.q.micro()
	post, version, err := layout.LoadSignpost(ctx, p.q.store, l)
	if err != nil {
		return err
	}
	if p.saw(l, post, began); version == 0 {
		return nil
	}
	post = post.With(p.q.process, p.q.micro())
	if err := p.change(ctx, l, post, version); store.AsConflict(err) != nil {
		return nil
	} else if err != nil {
		return layout.Failure("share a line out", err)
	}
	p.saw(l, post, began)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sharing = began + layout.SharedFor.Microseconds()
	return nil
}

// reserveOf returns what was read ahead of a line, and how much it is to be at most: nothing where nobody may come who takes it.
func (p *parts) reserveOf(l layout.Line) (r *reserve, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.line(l)
	if k.reserve == nil {
		k.reserve = newReserve(p.q)
	}
	if p.q.lasting {
		most = min(MaxClaim, MaxClaim*k.picked.PerSecond(p.q.micro())/(2*p.share)) // so that they go before they are too old
	}
	return k.reserve, most
}
