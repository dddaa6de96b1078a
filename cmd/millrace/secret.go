package main

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/service"
)

// secretCommand prints the signing secret that a server has made. It takes the store itself, so that no token leads to the secret.
type secretCommand struct{ stored }

func (secretCommand) Help() string {
	return `Examples:

    millrace secret --data /var/lib/millrace
    millrace secret --store 'postgres://user@host/database?schema=millrace'     also while servers run on it

Tasks that are sent by HTTP are signed (https://www.standardwebhooks.com): docs/targets.md says how a receiver verifies that. A server
that is given no secret makes one at its first start and keeps it in its store, whose readers see it by this command. A server
that has MILLRACE_SIGNING_SECRET, or a signing_secret in what MILLRACE_SECRETS names, signs with that instead.`
}

// Run prints the secret.
func (k secretCommand) Run(ctx context.Context, c console) error {
	return k.in(ctx, func(n *node) error {
		made, err := service.MadeSecret(ctx, n.Store)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.out, made)
		return err
	})
}
