package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// ChainState is the state of a job chain (JobChainOverview on the wire).
type ChainState struct {
	Path  string `json:"path"`
	State string `json:"state"` // running or stopped
}

func chainURL(path string) string { return v1 + "chains/" + url.PathEscape(path) }

// ChainStates returns the states of the job chains that the server has an overview of, in the order of their paths. A chain that it does
// not name is running.
func (c *Client) ChainStates(ctx context.Context) ([]ChainState, error) {
	var overview struct {
		JobChains []ChainState `json:"jobChains"`
	}
	q := call{method: http.MethodGet, path: base + "jobChain/", query: url.Values{"return": {"JobChainOverview"}}}
	if _, err := c.ask(ctx, q, &overview); err != nil {
		return nil, fmt.Errorf("client: states of job chains: %w", err)
	}
	return overview.JobChains, nil
}

// StopChain stops a job chain, so that none of its orders begins a step, or starts it again. Steps that run go on.
func (c *Client) StopChain(ctx context.Context, path string, on bool) error {
	act := "start"
	if on {
		act = "stop"
	}
	if err := c.act(ctx, http.MethodPost, chainURL(path)+"/"+act); err != nil {
		return fmt.Errorf("client: %s job chain %s: %w", act, path, err)
	}
	return nil
}

// SetNodeAction says what a node of a job chain does with orders: process, stop or next_state.
func (c *Client) SetNodeAction(ctx context.Context, path, node, action string) error {
	body, err := json.Marshal(map[string]string{"action": action})
	if err != nil {
		return fmt.Errorf("client: action: %w", err)
	}
	at := chainURL(path) + "/nodes/" + url.PathEscape(node) + "/action"
	if _, err := c.repeat(ctx, call{method: http.MethodPost, path: at, body: body}, c.patience); err != nil {
		return fmt.Errorf("client: action of node %s of job chain %s: %w", node, path, err)
	}
	return nil
}
