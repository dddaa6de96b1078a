package queue

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/queue/layout"
)

// Where many instances claim from the same lines by one process, each would read the same heads, and mark what it picks: the more there are, the more
// often each loses to the others, and to those of other processes. So the picks of a process are made one after the other, and those that wait
// meanwhile are made as one, by one look and one mark.

// picking is a claim's pick, and its result.
type picking struct {
	v     *sharedView
	n     int
	since time.Time
	picks []layout.Place
	err   error
}

// newPickings returns what gathers the picks of the claims of the same lines.
func newPickings() *groupcommit.Keyed[string, *picking] {
	return groupcommit.NewKeyed[string](groupcommit.Options[*picking]{
		Batch: func() func(*picking) bool { return new(jointPick).add },
		Write: pickAsOne,
		More:  func(waiting []*picking) bool { return time.Since(waiting[0].since) >= groupcommit.Slow }, // the one under way hangs
		Again: groupcommit.Slow,
	})
}

// jointPick is the picks that are made as one.
type jointPick struct{ n int }

// mostJoint is how many entries are picked as one at most, unless one claim wants more.
const mostJoint = lookAhead

// add adds a pick if it fits; the first does.
func (j *jointPick) add(p *picking) bool {
	if j.n > 0 && j.n+p.n > mostJoint {
		return false
	}
	j.n += p.n
	return true
}

// pickAsOne makes the pick of one claim for all, and gives out the entries in the order of the claims. None goes by what was read before it began:
// of what was read early, and of the rules, the newest counts. If there are fewer than are wanted at once, those that have got none pick again.
func pickAsOne(ctx context.Context, all []*picking) {
	v, rules := all[0].v, all[0].v.c.rules
	for _, p := range all {
		if p.v.isNewer(v) {
			v = p.v
		}
		if p.v.c.rules.Read.After(rules.Read) {
			rules = p.v.c.rules
		}
	}
	v.c.rules = rules
	for rest := all; len(rest) > 0; {
		if len(rest) < len(all) {
			v.again()
		}
		n := 0
		for _, p := range rest {
			n += p.n
		}
		picks, err := v.pickAlone(ctx, n)
		if err != nil || len(picks) == 0 {
			for _, p := range rest {
				p.err = err
			}
			break
		}
		for len(picks) > 0 {
			p := rest[0]
			p.picks = head(picks, p.n)
			picks, rest = picks[len(p.picks):], rest[1:]
		}
	}
	for _, p := range all {
		if p.v == v {
			p.picks = v.withPassed(p.picks)
		}
	}
}

// isNewer reports whether a claim has read the heads of its lines after another one, or has not read them.
func (v *sharedView) isNewer(than *sharedView) bool {
	a, b := v.c.by.Early, than.c.by.Early
	return b != nil && (a == nil || a.began.After(b.began))
}

// fromAll picks entries of all parts of the claim's lines.
func (v *sharedView) fromAll(ctx context.Context, n int) ([]layout.Place, error) {
	if v.from != nil || len(v.full) > 0 { // it goes on behind what it has seen, or passes over what others need not
		picks, err := v.pickAlone(ctx, n)
		return v.withPassed(picks), err
	}
	p := &picking{v: v, n: n, since: time.Now()}
	if err := v.pickings.Do(ctx, v.c.place(), p); err != nil {
		return nil, err
	}
	return p.picks, p.err
}
