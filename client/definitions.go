package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// definitions is where the definitions are.
const definitions = "/api/v1/definitions"

// Changes are the keys of the objects that putting definitions in force has added, replaced and removed, such as Job:/NAME.
type Changes struct {
	Added    []string `json:"added"`
	Replaced []string `json:"replaced"`
	Removed  []string `json:"removed"`
	Warnings []string `json:"warnings,omitempty"` // what is likely not meant in schedules: that one never fires again, say
}

// Apply puts the definitions of a document in YAML or JSON in the place of those in force, all of them or none; a dry run
// only tells what it would change. What is wrong in the document is in [Error.Fields], each with its line. It may be
// repeated: what is in force already changes nothing, so that an answer that was lost leaves no changes to tell of.
func (c *Client) Apply(ctx context.Context, document []byte, dryRun bool) (Changes, error) {
	if document == nil {
		document = []byte{}
	}
	q := call{method: http.MethodPut, path: definitions, body: document, kind: "application/yaml"}
	if dryRun {
		q.query = url.Values{"dry_run": {"true"}}
	}
	var changes Changes
	if _, err := c.ask(ctx, q, &changes); err != nil {
		return Changes{}, fmt.Errorf("client: apply: %w", err)
	}
	return changes, nil
}

// Definitions answers what is in force, as JSON that [Client.Apply] takes.
func (c *Client) Definitions(ctx context.Context) ([]byte, error) {
	answer, err := c.repeat(ctx, call{method: http.MethodGet, path: definitions}, c.patience)
	if err != nil {
		return nil, fmt.Errorf("client: definitions: %w", err)
	}
	return answer.body, nil
}
