package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Outcome is the outcome of an append as its writer knows it.
type Outcome int

// The outcomes.
const (
	Unknown Outcome = iota
	Acknowledged
	Refused
)

// String returns the outcome in lower case.
func (o Outcome) String() string { return []string{"unknown", "acknowledged", "refused"}[o] }

// emission is one append, and what it returned.
type emission struct {
	labels  []string
	outcome Outcome
	receipt journal.Receipt
}

// writer appends, in the process that runs in its home.
type writer struct {
	run  *run
	home *home[*process]
	name string
	luck *rand.Rand
}

func (r *run) writer(name string, at int, append func(*writer, int)) {
	w := &writer{run: r, home: r.homes.at(at), name: name, luck: dice(r.plan.seed, name)}
	r.writers.Go(func() {
		for n := range r.plan.appends {
			time.Sleep(time.Duration(w.luck.Int64N(int64(r.plan.think))) + time.Nanosecond)
			append(w, n)
		}
	})
}

// told records what an append returned; the outcome is unknown if the process has crashed.
func (w *writer) told(p *process, labels []string, receipt journal.Receipt, err error) {
	e := emission{labels: labels, receipt: receipt}
	switch {
	case p.crashed() || errors.Is(err, journal.ErrUnknownOutcome):
	case err == nil:
		e.outcome = Acknowledged
	default:
		e.outcome = Refused
	}
	w.run.note("writer %s: %s at %d, %v", w.name, labels, receipt.Position, err)
	w.run.emitted(e)
}

// plain emits one to three events.
func plain(w *writer, n int) {
	var labels []string
	var events []event.Event
	for i := range 1 + w.luck.IntN(3) {
		label := fmt.Sprintf("%s-%d-%d", w.name, n, i)
		labels = append(labels, label)
		events = append(events, labelled(label, "/k/"+strconv.Itoa(w.luck.IntN(4)), ""))
	}
	if w.run.plan.large && n%4 == 1 {
		events[0].Fields = append(events[0].Fields, padding...)
	}
	p := w.home.now()
	receipt, err := p.Emit(w.run.ctx, events, nil)
	w.told(p, labels, receipt, err)
}

// padding makes an append larger than one item may be.
var padding = []byte(`,"pad":"` + strings.Repeat("-", 360<<10) + `"`)

// once returns a function that emits an event under an idempotency key that a writer in another process uses for the same event,
// and repeats it until it is acknowledged, at most 8 times.
func once(twins string) func(*writer, int) {
	return func(w *writer, n int) {
		label := fmt.Sprintf("%s-%d", twins, n)
		events := []event.Event{labelled(label, "/k/0", "")}
		key := &journal.Idempotency{Scope: "simulation", Key: label, Fingerprint: [32]byte{1}}
		for range 8 {
			p := w.home.now()
			receipt, err := p.Emit(w.run.ctx, events, key)
			if err == nil && !p.crashed() {
				w.told(p, []string{label}, receipt, nil)
				return
			}
			time.Sleep(time.Duration(w.luck.Int64N(int64(100 * time.Millisecond))))
		}
	}
}

// itemKey returns the key of one of the items that transactional writers share.
func itemKey(name string) store.Key {
	return store.Key{Table: store.Work, Partition: "shared", Sort: name}
}

// change counts one or both of two shared items up, with an event for each that holds the counts before and after.
func change(w *writer, n int) {
	names := [][]string{{"A"}, {"B"}, {"A", "B"}, {"B", "A"}}[w.luck.IntN(4)]
	var labels []string
	for i := range names {
		labels = append(labels, fmt.Sprintf("%s-%d-%d", w.name, n, i))
	}
	p := w.home.now()
	receipt, err := p.Write(w.run.ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		return prepare(ctx, p, names, labels)
	})
	w.told(p, labels, receipt, err)
}

func prepare(ctx context.Context, p *process, names, labels []string) (journal.Change, error) {
	var keys []store.Key
	for _, name := range names {
		keys = append(keys, itemKey(name))
	}
	found, err := p.line.Get(ctx, keys...)
	if err != nil {
		return journal.Change{}, err
	}
	var c journal.Change
	var ops []store.Op
	for i, item := range found {
		count, cond := 0, store.Absent
		if item != nil {
			cond = store.VersionIs(item.Version)
			if count, err = strconv.Atoi(string(item.Value)); err != nil {
				return c, err
			}
		}
		c.Events = append(c.Events, labelled(labels[i], "/item/"+names[i], fmt.Sprintf(`,"from":%d,"to":%d`, count, count+1)))
		ops = append(ops, store.Put(store.Item{Key: keys[i], Value: []byte(strconv.Itoa(count + 1))}, cond))
	}
	c.Ops = func(journal.Receipt) []store.Op { return append([]store.Op(nil), ops...) }
	return c, nil
}
