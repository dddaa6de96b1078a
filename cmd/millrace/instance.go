package main

import (
	"context"
	"strings"

	"github.com/millrace/millrace/client"
)

// instanceCommand shows the processes that run tasks, and drains them.
type instanceCommand struct {
	List  instanceList  `cmd:"" help:"List the instances: what they can run, and how many tasks they run."`
	Drain instanceDrain `cmd:"" help:"Have an instance finish what it runs, and leave."`
}

type instanceList struct {
	remote
	format
}

// Run prints the instances.
func (i instanceList) Run(ctx context.Context, c console) error {
	return i.on(c, func(server *client.Client) error {
		return list(c, i.format, "instances", server.Instances(ctx), "ID\tNAME\tRUNNING\tCAPACITY\tSTATE\tJOBS", func(i *client.Instance) []any {
			return []any{i.ID, i.Name, i.Running, i.Capacity, stateOf(i), strings.Join(i.Jobs, " ")}
		})
	})
}

func stateOf(i *client.Instance) string {
	switch {
	case i.Draining:
		return "draining"
	case i.Leader:
		return "leader"
	default:
		return "-"
	}
}

type instanceDrain struct {
	remote
	ID string `arg:"" help:"The instance's id, from the list."`
}

// Run drains the instance.
func (i instanceDrain) Run(ctx context.Context, c console) error {
	return i.on(c, func(server *client.Client) error {
		err := server.DrainInstance(ctx, i.ID)
		if err == nil {
			c.note("%s is given no more tasks, and leaves when it has finished what it runs", i.ID)
		}
		return err
	})
}
