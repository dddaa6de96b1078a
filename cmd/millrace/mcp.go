package main

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/shared/mcp"
)

// mcpCommand serves the Model Context Protocol.
type mcpCommand struct{ remote }

func (mcpCommand) Help() string {
	return `An assistant starts it and speaks to it on its standard input and output. Its tools read and act on the server at MILLRACE_URL, with the
rights of MILLRACE_TOKEN: with the token of a viewer it can only look. For example in an assistant's configuration:

    {"mcpServers": {"millrace": {"command": "millrace", "args": ["mcp"], "env": {"MILLRACE_TOKEN": "…"}}}}`
}

// Run serves until the input ends.
func (m mcpCommand) Run(ctx context.Context, c console) error {
	if m.Token == "" {
		return usageError{errNoToken}
	}
	server := mcp.New(mcp.Options{URL: m.URL, Token: m.Token, Version: version()})
	return server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(c.in), Writer: kept{c.out}})
}

// kept is an output that stays open.
type kept struct{ io.Writer }

// Close does nothing.
func (kept) Close() error { return nil }
