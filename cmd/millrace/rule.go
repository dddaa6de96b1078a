package main

import (
	"context"
	"strconv"
	"time"

	"github.com/millrace/millrace/client"
)

// ruleCommand holds handlers.
type ruleCommand struct {
	Set   ruleSet   `cmd:"" help:"Hold a handler's events."`
	Clear ruleClear `cmd:"" help:"Let a handler's events go again."`
	List  ruleList  `cmd:"" help:"List the handlers of a canvas, with their states and counts."`
}

type ruleArgs struct {
	remote
	Rule string `arg:"" help:"pause, which operators may, or block, which admins may." enum:"pause,block"`
	handlerArgs
}

type ruleSet struct{ ruleArgs }

func (ruleSet) Help() string {
	return `Events that run are not stopped. The rules are independent of each other; a handler may be held before it is defined.`
}

// Run sets the rule.
func (r ruleSet) Run(ctx context.Context, c console) error { return r.turn(ctx, c, true) }

type ruleClear struct{ ruleArgs }

func (ruleClear) Help() string {
	return `The events go in their order, unless the other rule still holds them.`
}

// Run takes the rule away.
func (r ruleClear) Run(ctx context.Context, c console) error { return r.turn(ctx, c, false) }

func (r ruleArgs) turn(ctx context.Context, c console, on bool) error {
	return r.on(c, func(server *client.Client) error {
		return server.SetRule(ctx, r.handler(), r.Rule, on)
	})
}

type ruleList struct {
	remote
	format
	Canvas string `arg:"" help:"Canvas of the handlers."`
	Held   bool   `help:"Only handlers that a rule holds."`
}

// Run prints the handlers.
func (r ruleList) Run(ctx context.Context, c console) error {
	return r.on(c, func(server *client.Client) error {
		all, err := collect(server.Handlers(ctx, r.Canvas))
		if err != nil {
			return err
		}
		kept := all[:0]
		for _, h := range all {
			if !r.Held || h.State != "run" {
				kept = append(kept, h)
			}
		}
		return listed(c, r.format, "handlers", kept, "SPACE\tNAME\tSTATE\tNEW\tSCHEDULED\tLOCKED\tDONE\tERROR\tMISSING\tOLDEST WAIT",
			func(h *client.Handler) []any {
				n := h.Counts
				return []any{h.Space, h.Name, h.State, n["new"], n["scheduled"], n["locked"], n["done"], n["error"], n["missing"], waited(h.OldestWait)}
			})
	})
}

// waited shows a wait in a table.
func waited(ms *int64) string {
	if ms == nil {
		return "-"
	}
	if *ms < 1000 {
		return strconv.FormatInt(*ms, 10) + "ms"
	}
	return (time.Duration(*ms) * time.Millisecond).Round(time.Second).String()
}
