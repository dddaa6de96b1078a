package client

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Snapshot is the state of objects at one EventId.
type Snapshot struct {
	Objects []Object // in the order of their keys

	// EventID is the stamp: all events up to it are in the snapshot, none after it is.
	EventID event.ID
}

// Object is the projection of one key's custom events: their fields merged, the newest winning (ObjectOverview on the wire).
type Object struct {
	Key      event.Key
	EventID  event.ID // of its newest event
	LastType string   // of its newest event
	Fields   []byte   // JSON members without the braces around them
}

// MarshalJSON returns the snapshot in the server's form.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	b := []byte(`{"objects":[`)
	for i := range s.Objects {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.Objects[i].appendJSON(b)
	}
	return append(strconv.AppendInt(append(b, `],"eventId":`...), int64(s.EventID), 10), '}'), nil
}

// MarshalJSON returns the object in the server's form.
func (o Object) MarshalJSON() ([]byte, error) { return o.appendJSON(nil), nil }

func (o *Object) appendJSON(b []byte) []byte {
	b = o.Key.AppendJSON(append(b, `{"TYPE":"ObjectOverview","key":`...))
	b = strconv.AppendInt(append(b, `,"eventId":`...), int64(o.EventID), 10)
	b = append(append(append(b, `,"lastType":"`...), o.LastType...), '"') // a type's name needs no escapes
	if len(o.Fields) > 0 {
		b = append(append(b, ','), o.Fields...)
	}
	return append(b, '}')
}

// Snapshot returns a snapshot of the objects that path selects, as [Query.Path] does; empty: of all.
func (c *Client) Snapshot(ctx context.Context, path string) (Snapshot, error) {
	snapshot, err := c.snapshot(ctx, path, nil, c.patience)
	if err != nil {
		return Snapshot{}, fmt.Errorf("client: snapshot: %w", err)
	}
	return snapshot, nil
}

// SnapshotAt is [Client.Snapshot] as of an earlier EventId, with which it is stamped. An id below the oldest that the server keeps
// is refused as torn (410), one beyond the newest as impossible (422).
func (c *Client) SnapshotAt(ctx context.Context, path string, at event.ID) (Snapshot, error) {
	snapshot, err := c.snapshot(ctx, path, url.Values{"at": {strconv.FormatInt(int64(at), 10)}}, c.patience)
	if err != nil {
		return Snapshot{}, fmt.Errorf("client: snapshot: %w", err)
	}
	return snapshot, nil
}

func (c *Client) snapshot(ctx context.Context, path string, query url.Values, patience time.Duration) (Snapshot, error) {
	all := url.Values{"return": {"ObjectOverview"}}
	maps.Copy(all, query)
	q := call{method: http.MethodPost, path: base + "object", query: all, body: pathQuery(path)}
	answer, err := c.repeat(ctx, q, patience)
	if err != nil {
		return Snapshot{}, err
	}
	return decodeSnapshot(answer.body)
}
