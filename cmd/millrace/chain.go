package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/chaingraph"
	"github.com/millrace/millrace/shared/definition"
)

// chainCommand shows job chains and acts on them.
type chainCommand struct {
	List   chainList   `cmd:"" help:"List the job chains, with their states."`
	Show   chainShow   `cmd:"" help:"Draw a job chain as a graph."`
	Stop   chainStop   `cmd:"" help:"Keep the orders of a job chain from beginning steps."`
	Start  chainStart  `cmd:"" help:"Let the orders of a job chain begin steps again."`
	Action chainAction `cmd:"" help:"Say what a node of a job chain does with orders."`
}

type chainArgs struct {
	remote
	Path string `arg:"" help:"The job chain's path, such as /folder/chain."`
}

type chainList struct {
	remote
	format
}

// chainRow is a job chain in a list.
type chainRow struct {
	Path      string `json:"path"`
	State     string `json:"state"` // running or stopped
	Nodes     int    `json:"nodes"` // without those of nested chains and forks
	MaxOrders int    `json:"max_orders,omitempty"`
}

// Run prints the job chains.
func (l chainList) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		set, err := declared(ctx, server)
		if err != nil {
			return err
		}
		states, err := server.ChainStates(ctx)
		if err != nil {
			return err
		}
		return listed(c, l.format, "job_chains", chainRows(set, states), "PATH\tSTATE\tNODES\tMAX ORDERS", func(r *chainRow) []any {
			most := "-"
			if r.MaxOrders > 0 {
				most = fmt.Sprint(r.MaxOrders)
			}
			return []any{r.Path, r.State, r.Nodes, most}
		})
	})
}

// chainRows returns the declared chains in the order of their declarations. One without a known state is running.
func chainRows(set *definition.Set, states []client.ChainState) []chainRow {
	known := map[string]string{}
	for _, s := range states {
		known[s.Path] = s.State
	}
	rows := []chainRow{}
	for i := range set.JobChains {
		chain := &set.JobChains[i]
		row := chainRow{chain.Path, "running", len(chain.Nodes), chain.MaxOrders}
		if state := known[chain.Path]; state != "" {
			row.State = state
		}
		rows = append(rows, row)
	}
	return rows
}

// declared returns the definitions in force.
func declared(ctx context.Context, server *client.Client) (*definition.Set, error) {
	text, err := server.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	return definition.Read("the server's definitions", text)
}

type chainShow struct {
	chainArgs
	format
	Mermaid bool `help:"Draw it in the language of Mermaid, for a page or an editor that shows it as a picture."`
}

func (chainShow) Help() string {
	return `Examples:

    millrace chain show /folder/chain
    millrace chain show /folder/chain --mermaid > chain.mmd

Each node is printed with what happens there, and below it the ways on from it: → after success, otherwise after the return code, the
answer or the error that is named. Nested chains and the children of forks are drawn as parts of the chain, with the ids of nodes that
orders have there. What is drawn is in force for new orders; older orders may go by an older version of the chain.`
}

// Run draws the job chain.
func (s chainShow) Run(ctx context.Context, c console) error {
	if s.Mermaid && s.Output != "table" {
		return misused("--mermaid and --output cannot both be given")
	}
	return s.on(c, func(server *client.Client) error {
		set, err := declared(ctx, server)
		if err != nil {
			return err
		}
		graph, err := set.Graph(s.Path)
		if err != nil {
			return err
		}
		return s.draw(c, graph)
	})
}

func (s chainShow) draw(c console, graph *definition.Graph) error {
	text := chaingraph.Text(graph)
	switch {
	case s.Output == "json":
		return printJSON(c.out, json.RawMessage(graph.JSON()))
	case s.Output == "jsonl":
		text = string(graph.JSON()) + "\n"
	case s.Mermaid:
		text = chaingraph.Mermaid(graph)
	}
	_, err := fmt.Fprint(c.out, text)
	return err
}

type chainStop struct{ chainArgs }

func (chainStop) Help() string {
	return `Steps that run go on; then their orders wait, as do new ones. It holds for all versions of the chain, until "chain start".`
}

// Run stops the job chain.
func (s chainStop) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error { return server.StopChain(ctx, s.Path, true) })
}

type chainStart struct{ chainArgs }

// Run starts the job chain.
func (s chainStart) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error { return server.StopChain(ctx, s.Path, false) })
}

type chainAction struct {
	chainArgs
	Node   string `arg:"" help:"The node's id, as \"chain show\" prints it."`
	Action string `arg:"" help:"process: steps run; stop: orders wait here; next_state: they go on to the next node at once." enum:"process,stop,next_state"`
}

func (chainAction) Help() string {
	return `Examples:

    millrace chain action /folder/chain 200 stop
    millrace chain action /folder/chain 200 process

Steps that run go on. It holds for all versions of the chain; what the definition says of the node is only the beginning.`
}

// Run sets the action.
func (a chainAction) Run(ctx context.Context, c console) error {
	return a.on(c, func(server *client.Client) error { return server.SetNodeAction(ctx, a.Path, a.Node, a.Action) })
}
