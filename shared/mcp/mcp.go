package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/shared/act"
)

// Options of a server. URL and Token are required.
type Options struct {
	URL     string       // of the server whose API is offered, without a path
	Token   string       // shown with each request
	Version string       // told to clients
	Client  *http.Client // default: [http.DefaultClient]
}

// New returns a server of the protocol that has a tool for each act and for all that can be read.
func New(o Options) *sdk.Server {
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "millrace", Title: "Millrace", Version: o.Version}, &sdk.ServerOptions{Instructions: instructions})
	for _, t := range tools() {
		s.AddTool(t.tool(), func(ctx context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			request, err := t.request(call.Params.Arguments)
			if err != nil {
				return failed(err.Error()), nil
			}
			return o.send(ctx, request)
		})
	}
	return s
}

// instructions tell an assistant how the tools belong together.
const instructions = `Millrace is an ordered journal of events with a scheduler of tasks. Begin with list_queues, list_jobs or list_orders; why_task and why_order say ` +
	`in one sentence why something is not running. Moments are EventIds: microseconds since 1970. Before an act on many, count with dry_run.`

// mostRead bounds what a tool returns, so that a list does not fill an assistant's memory, in bytes.
const mostRead = 200 << 10

// send makes a request to the API. What the API refuses is the tool's failure, in the API's words.
func (o *Options) send(ctx context.Context, request act.Request) (*sdk.CallToolResult, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, strings.TrimSuffix(o.URL, "/")+request.Target, strings.NewReader(request.Body))
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+o.Token)
	if request.Body != "" {
		r.Header.Set("Content-Type", request.ContentType())
	}
	if request.Header != "" {
		r.Header.Set(request.Header, request.Value)
	}
	response, err := o.Client.Do(r)
	if err != nil {
		return failed(fmt.Sprintf("the server cannot be reached: %v", err)), nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostRead+1))
	text := string(body)
	switch {
	case err != nil:
		return failed(fmt.Sprintf("the response broke off: %v", err)), nil
	case response.StatusCode >= http.StatusBadRequest:
		return failed(text), nil
	case len(body) > mostRead:
		text = strings.ToValidUTF8(text[:mostRead], "") + "\n… this is only the beginning: ask for less by limit, or by a filter"
	case text == "":
		text = "done"
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

// failed is the result of a tool that has failed.
func failed(why string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: why}}}
}
