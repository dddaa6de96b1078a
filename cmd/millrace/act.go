package main

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/client"
)

// actCommand looks after acts on many orders or jobs.
type actCommand struct {
	Show   actShow   `cmd:"" help:"Print how far an act is."`
	Stop   actStop   `cmd:"" help:"Stop an act; what is done stays done."`
	Resume actResume `cmd:"" help:"Let an act go on that was stopped."`
}

// oneAct is an act on a server.
type oneAct struct {
	remote
	ID string `arg:"" help:"Id of the act, as order act and job act print it."`
}

type actShow struct {
	oneAct
	format
}

// Run prints the act.
func (s actShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		b, err := server.BulkAct(ctx, s.ID)
		return s.show(c, b, err)
	})
}

type actStop struct{ oneAct }

// Run stops the act.
func (s actStop) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error { return server.StopAct(ctx, s.ID) })
}

type actResume struct{ oneAct }

// Run lets the act go on.
func (r actResume) Run(ctx context.Context, c console) error {
	return r.on(c, func(server *client.Client) error { return server.ResumeAct(ctx, r.ID) })
}

// many are the flags of an act on many.
type many struct {
	remote
	format
	Filter map[string]string `help:"What is selected; all of it holds." placeholder:"NAME=VALUE" mapsep:"none"`
	All    bool              `help:"Select everything, without a filter."`
	Limit  *int              `help:"Select so many at most, the first that are found." placeholder:"N"`
	Rate   *int              `name:"per-second" help:"Do so many at most in a second, up to 1000." placeholder:"N"`
	DryRun bool              `help:"Print only how many are selected."`
	Detach bool              `help:"Do not wait for the end; prints the act's id at once."`
}

// read passes what the filter says to where its names belong.
func (m *many) read(names map[string]*string) error {
	if len(m.Filter) == 0 && !m.All {
		return misused("nothing is selected: give --filter, or --all")
	}
	for name, value := range m.Filter {
		into, known := names[name]
		if !known {
			return misused("--filter %s is not known", name)
		}
		*into = value
	}
	return nil
}

// portion returns how much of what is selected is done, and how fast.
func (m *many) portion() (p client.Portion, err error) {
	for _, f := range []struct {
		name  string
		given *int
		into  *int
	}{{"limit", m.Limit, &p.Limit}, {"per-second", m.Rate, &p.PerSecond}} {
		if f.given == nil {
			continue
		}
		if *f.given < 1 {
			return p, misused("--%s %d: want 1 or more", f.name, *f.given)
		}
		*f.into = *f.given
	}
	return p, nil
}

// follow prints what becomes of an act.
func (m *many) follow(ctx context.Context, c console, server *client.Client, id string, selected int) error {
	if m.Detach {
		c.note("%d are selected", selected)
		return m.line(c, id, map[string]any{"id": id, "count": selected})
	}
	c.note("act %s: %d are selected", id, selected)
	b, err := server.WaitForAct(ctx, id)
	return m.show(c, b, err)
}

// counted prints how many are selected.
func (m *many) counted(c console, n int, err error) error {
	if err != nil {
		return err
	}
	return m.line(c, fmt.Sprint(n), map[string]int{"count": n})
}

type orderAct struct {
	many
	Act       string `help:"What is done: ${enum}." enum:"suspend,resume,set-node,skip,reset,run-now,move,remove" required:"" placeholder:"ACT"`
	Node      string `help:"Of set-node." placeholder:"ID"`
	Version   int    `help:"Of move; default: the newest." placeholder:"N"`
	Variables string `help:"Of resume: a JSON object, which is merged with each order's variables." placeholder:"JSON"`
}

func (orderAct) Help() string {
	return `The filter's names are path (of chains: /a/b, /a/, /a/*), state, node and obstacle:

    millrace order act --act resume --filter path=/folder/ --filter obstacle=Suspended

What is selected is written down first. If this program ends, the server goes on all the same; see "millrace act".`
}

// Run begins the act, and prints how it ends.
func (a orderAct) Run(ctx context.Context, c console) error {
	var f client.OrderFilter
	if err := a.read(map[string]*string{"path": &f.Path, "state": &f.State, "node": &f.Node, "obstacle": &f.Obstacle}); err != nil {
		return err
	}
	changed, err := variables(a.Variables)
	if err == nil {
		f.Portion, err = a.portion()
	}
	if err != nil {
		return err
	}
	act := client.OrderAct{Kind: a.Act, Node: a.Node, Version: a.Version, Variables: changed}
	return a.on(c, func(server *client.Client) error {
		if a.DryRun {
			n, err := server.CountOrders(ctx, act, f)
			return a.counted(c, n, err)
		}
		id, n, err := server.ActOnOrders(ctx, act, f)
		if err != nil {
			return err
		}
		return a.follow(ctx, c, server, id, n)
	})
}

type jobAct struct {
	many
	Act string `help:"What is done: ${enum}." enum:"remove,stop,retry" required:"" placeholder:"ACT"`
}

func (jobAct) Help() string {
	return `The filter's names are path (of jobs, /topics/TOPIC), topic, state (the types of "job list"), and message (jobs whose newest
message is as this one, but for numbers, ids and what is quoted). Without a state, those are selected that are not finished;
for retry, those that were given up:

    millrace job act --act retry --filter topic=mail/send
    millrace job act --act retry --filter topic=mail/send --filter "message=cannot reach db7" --limit 100 --per-second 5`
}

// Run begins the act, and prints how it ends.
func (a jobAct) Run(ctx context.Context, c console) error {
	var f client.JobFilter
	if err := a.read(map[string]*string{"path": &f.Path, "topic": &f.Topic, "state": &f.State, "message": &f.Message}); err != nil {
		return err
	}
	var err error
	if f.Portion, err = a.portion(); err != nil {
		return err
	}
	return a.on(c, func(server *client.Client) error {
		if a.DryRun {
			n, err := server.CountJobs(ctx, a.Act, f)
			return a.counted(c, n, err)
		}
		id, n, err := server.ActOnJobs(ctx, a.Act, f)
		if err != nil {
			return err
		}
		return a.follow(ctx, c, server, id, n)
	})
}
