package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/store/postgres"
)

type tablesCommand struct {
	Store string `help:"Store that the tables are for: dynamodb:PREFIX or postgres://HOST/DATABASE ($MILLRACE_STORE)." placeholder:"URL"`
}

func (tablesCommand) Help() string {
	return `Examples, in PostgreSQL, and on DynamoDB Local or LocalStack:

    millrace tables --store 'postgres://user:password@host/database?schema=millrace'

    export AWS_ENDPOINT_URL=http://127.0.0.1:4566 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x
    millrace tables --store dynamodb:millrace
    millrace serve --store dynamodb:millrace

In PostgreSQL it makes the schema and its tables; the user needs the right to do so only for that. On DynamoDB it creates those of the
three tables that are missing, on demand and with time-to-live. On AWS, deploy template.yaml instead: what this
command creates has neither point-in-time recovery nor protection from deletion.`
}

// Run creates the tables and waits until they can be used.
func (k tablesCommand) Run(ctx context.Context, c console) error {
	url := cmp.Or(k.Store, os.Getenv("MILLRACE_STORE"))
	s, err := openTables(ctx, url)
	if err != nil {
		return usageError{err}
	}
	if err := errors.Join(s.CreateTables(ctx), s.Close()); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "the tables of %s can be used\n", config.Redacted(url))
	return nil
}

// tabled is a store whose tables are made before it is used.
type tabled interface {
	CreateTables(ctx context.Context) error
	Close() error
}

func openTables(ctx context.Context, url string) (tabled, error) {
	switch scheme, place, _ := strings.Cut(url, ":"); scheme {
	case "dynamodb":
		return dynamo.Open(ctx, dynamo.Options{Prefix: place})
	case "postgres":
		return postgres.Open(ctx, postgres.Options{URL: url})
	}
	return nil, fmt.Errorf("--store is %q, want dynamodb:PREFIX or postgres://HOST/DATABASE: other stores have no tables", config.Redacted(url))
}
