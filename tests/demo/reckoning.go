package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/witness"
)

var errWrong = errors.New("something was wrong, see above")

// reckon prints what each follower saw, and returns an error if anything was wrong.
func (p *performance) reckon(log []event.Event) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	right := p.reckonFollowers(t)
	right = p.reckonSnapshots(t, log) && right
	p.rates(t)
	if err := t.Flush(); err != nil {
		return err
	}
	if !right {
		return errWrong
	}
	fmt.Printf("\nNothing was missed, nothing doubled, nothing out of order: %s events, %d followers, one kill -9.\n",
		number(p.witness.Count()), len(p.followers))
	return nil
}

func (p *performance) reckonFollowers(t *tabwriter.Writer) bool {
	right := true
	fmt.Fprintln(t, "\nFOLLOWER\tEVENTS\tANSWERS\tTRIED AGAIN\tSAW")
	for _, f := range p.followers {
		v := witness.Judge(p.witness.Journal(f.match), f.saw)
		right = right && v.OK()
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", f.name, number(len(f.saw)), number(f.answers), f.retries.Load(), v)
	}
	return right
}

// reckonSnapshots checks that each snapshot and the events after it give the last one, and that this is what the log,
// read from top to bottom, comes to.
func (p *performance) reckonSnapshots(t *tabwriter.Writer, log []event.Event) bool {
	right := true
	journal := p.witness.Journal(nil)
	final := p.snapshots[len(p.snapshots)-1].Objects
	fmt.Fprintln(t, "\nSNAPSHOT\tOBJECTS\tEVENTS AFTER\tTOGETHER")
	for _, s := range p.snapshots {
		rest := journal
		for len(rest) > 0 && rest[0].ID <= s.EventID {
			rest = rest[1:]
		}
		ok := same(fold(s.Snapshot, rest), final, client.Object.Equal)
		right = right && ok
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.when, number(len(s.Objects)), number(len(rest)), word(ok, "the final state"))
	}
	ok := same(fold(client.Snapshot{}, log), final, alike)
	fmt.Fprintf(t, "none: the log itself\t0\t%s\t%s\n", number(len(log)), word(ok, "the final state"))
	return right && ok
}

func word(ok bool, right string) string {
	if ok {
		return right
	}
	return "DIFFERENT"
}

func fold(s client.Snapshot, events []event.Event) []client.Object {
	state := client.StateOf(s)
	for _, e := range events {
		if err := state.Apply(e); err != nil {
			return nil
		}
	}
	return state.Objects()
}

func same(a, b []client.Object, equal func(a, b client.Object) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// alike compares objects but for their EventIds, which the log does not have.
func alike(a, b client.Object) bool {
	a.EventID = b.EventID
	return a.Equal(b)
}

func (p *performance) rates(t *tabwriter.Writer) {
	seconds := (p.emitted - p.away).Seconds()
	read := 0
	for _, f := range p.followers {
		read += len(f.saw)
	}
	fmt.Fprintln(t, "\nRATES, over HTTP, every append durable")
	fmt.Fprintf(t, "acknowledged\t%s events/s\twhile the server was up\n", number(int(float64(p.witness.Count())/seconds)))
	fmt.Fprintf(t, "read meanwhile\t%s events/s\tby all followers together\n", number(int(float64(read)/p.emitted.Seconds())))
	fmt.Fprintf(t, "server away\t%.3f s\tfrom the kill until it answered again\n", p.away.Seconds())
}
