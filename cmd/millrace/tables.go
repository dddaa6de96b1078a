package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/millrace/millrace/shared/store/dynamo"
)

type tablesCommand struct {
	Store string `help:"Store that the tables are for: dynamodb:PREFIX ($MILLRACE_STORE)." placeholder:"URL"`
}

func (tablesCommand) Help() string {
	return `Example, on DynamoDB Local or LocalStack:

    export AWS_ENDPOINT_URL=http://127.0.0.1:4566 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x
    millrace tables --store dynamodb:millrace
    millrace serve --store dynamodb:millrace

Creates those of the three tables that are missing, on demand and with time-to-live. On AWS, deploy template.yaml instead: what this
command creates has neither point-in-time recovery nor protection from deletion.`
}

// Run creates the tables and waits until they can be used.
func (k tablesCommand) Run(ctx context.Context, c console) error {
	url := cmp.Or(k.Store, os.Getenv("MILLRACE_STORE"))
	prefix, ok := strings.CutPrefix(url, "dynamodb:")
	if !ok {
		return usageError{fmt.Errorf("--store is %q, want dynamodb:PREFIX: other stores have no tables", url)}
	}
	s, err := dynamo.Open(ctx, dynamo.Options{Prefix: prefix})
	if err != nil {
		return usageError{err}
	}
	if err := errors.Join(s.CreateTables(ctx), s.Close()); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "the tables of %s can be used\n", url)
	return nil
}
