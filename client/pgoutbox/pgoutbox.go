// Package pgoutbox adds jobs and emits events within a transaction of the caller's own in PostgreSQL, where Millrace's store is in the same
// database: they come to be if the transaction commits, once, and never otherwise. Programs in other languages call the same functions
// of the database, as SELECT millrace.add_job('{"topic":"mail"}') and SELECT millrace.emit('{"TYPE":"ParcelMoved","key":"/parcels/17"}').
//
// A server makes jobs and events of the outbox's rows soon after the commit. It keeps the order of events; an event may be there before or
// after a job of the same transaction. What it refuses, such as a topic with a wrong character, stays in the table outbox with the reason
// in the column failed, and the server's log tells of it.
//
// The user of the transaction needs USAGE of the schema, and no right to its tables.
//
// The package imports client and event, and of others the driver for PostgreSQL.
package pgoutbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// Outbox is the outbox of a store. The zero value is that of the schema millrace.
type Outbox struct {
	Schema string // of the store; default millrace
}

// AddJob asks for a job in a transaction. It returns the request's number in the outbox; the job's id is known to nobody yet.
func (o Outbox) AddJob(ctx context.Context, tx pgx.Tx, job client.NewJob) (number int64, err error) {
	text, err := json.Marshal(job)
	if err != nil {
		return 0, fmt.Errorf("pgoutbox: %w", err)
	}
	return o.call(ctx, tx, "add_job", text)
}

// Emit asks for events, at least one, that are appended together. It returns the request's number in the outbox.
func (o Outbox) Emit(ctx context.Context, tx pgx.Tx, events ...event.Event) (number int64, err error) {
	text := []byte{'['}
	for i := range events {
		if i > 0 {
			text = append(text, ',')
		}
		fresh := event.Event{Type: events[i].Type, Key: events[i].Key, Fields: events[i].Fields}
		text = fresh.AppendJSON(text, true)
	}
	return o.call(ctx, tx, "emit", append(text, ']'))
}

func (o Outbox) call(ctx context.Context, tx pgx.Tx, function string, text []byte) (number int64, err error) {
	schema := o.Schema
	if schema == "" {
		schema = "millrace"
	}
	err = tx.QueryRow(ctx, "SELECT "+pgx.Identifier{schema, function}.Sanitize()+"($1)", string(text)).Scan(&number)
	if err != nil {
		return 0, fmt.Errorf("pgoutbox: %s: %w", function, err)
	}
	return number, nil
}
