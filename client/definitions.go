package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// definitions is the path of the definitions.
const definitions = "/api/v1/definitions"

// Changes are the keys of the objects that an Apply has added, replaced and removed, such as Job:/NAME.
type Changes struct {
	Added    []string `json:"added"`              // were not in force
	Replaced []string `json:"replaced"`           // in force and different
	Removed  []string `json:"removed"`            // no longer in force
	Warnings []string `json:"warnings,omitempty"` // likely mistakes in schedules and job chains, such as a schedule that never fires again
}

// Apply replaces the definitions in force by those of a document in YAML or JSON, all of them or none; a dry run
// only returns what would change. The document's mistakes are in [Error.Fields], each with its line. It may be
// repeated: definitions in force already change nothing, so that after a lost response the Changes are empty.
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

// Definitions returns the definitions in force, as JSON that [Client.Apply] accepts.
func (c *Client) Definitions(ctx context.Context) ([]byte, error) {
	answer, err := c.repeat(ctx, call{method: http.MethodGet, path: definitions}, c.patience)
	if err != nil {
		return nil, fmt.Errorf("client: definitions: %w", err)
	}
	return answer.body, nil
}
