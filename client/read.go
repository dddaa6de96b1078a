package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Query selects events.
type Query struct {
	// After is the EventId after which to read: that of a snapshot, or of the last event read; 0: the beginning.
	After event.ID

	// Types are the selected event types, super types too; none: every event.
	Types []string

	// Path, if not empty, selects by key: "/a" one object, "/a/" everything below, "/a/*" its direct children, several
	// joined by "|". Only custom events are selected then.
	Path string

	// Limit is the most events of one response, within 32 bits; 0: as many as the server returns. Negative: the newest ones,
	// newest first.
	Limit int

	// Wait is how long the server waits for the first event, cut to its own limit; 0: not at all. A follower's default is a
	// minute.
	Wait time.Duration

	// Causes asks for what brought each event about: its Cause, and, of acts, the name of the token as its By.
	Causes bool
}

// Answer is the result of one read.
type Answer struct {
	// Events are those that matched: in rising order of their ids, or in falling order for a negative limit.
	Events []event.Event

	// Last is the EventId for the next Query.After.
	Last event.ID

	// Torn says that events after Query.After were evicted, so that only a new snapshot has the state.
	Torn bool
}

// Read reads once. Where Events is empty and Torn false, nothing matched within Query.Wait.
func (c *Client) Read(ctx context.Context, q Query) (Answer, error) {
	answer, err := c.read(ctx, q, c.patience)
	if err != nil {
		return Answer{}, fmt.Errorf("client: read after %d: %w", q.After, err)
	}
	return answer, nil
}

func (c *Client) read(ctx context.Context, q Query, patience time.Duration) (Answer, error) {
	answer, err := c.repeat(ctx, q.call(), patience)
	if err != nil {
		return Answer{}, err
	}
	return decodeAnswer(answer.body, q)
}

func (q Query) call() call {
	values := url.Values{"return": {"Event"}}
	if len(q.Types) > 0 {
		values.Set("return", strings.Join(q.Types, ","))
	}
	if q.Limit >= 0 || q.After != 0 {
		values.Set("after", strconv.FormatInt(int64(q.After), 10))
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		values.Set("timeout", strconv.FormatFloat(q.Wait.Seconds(), 'f', -1, 64))
	}
	if q.Causes {
		values.Set("with", "cause")
	}
	if q.Path == "" {
		return call{method: http.MethodGet, path: base + "event", query: values, wait: q.Wait}
	}
	return call{method: http.MethodPost, path: base + "object", query: values, body: pathQuery(q.Path), wait: q.Wait}
}

// pathQuery returns the body of a request for what path selects; in a body nothing needs escaping.
func pathQuery(path string) []byte {
	if path == "" {
		return []byte("{}")
	}
	body, err := json.Marshal(map[string][]string{"paths": strings.Split(path, "|")})
	if err != nil {
		panic(err) // strings only
	}
	return body
}
