package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace/millrace/shared/store"
)

// tables are the port's tables.
var tables = [...]store.Table{store.Journal, store.Work, store.Definitions}

// Ping reads an item that is not there from each table: that takes a connection, credentials, tables and permissions.
// It returns nil for a function that may use only some of the tables; one that may use none gets an error.
//
// Price: 1.5 RCU.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	var denied error
	denials := 0
	for _, table := range tables {
		_, err := s.touch(ctx, table)
		switch {
		case errors.Is(err, store.ErrDenied):
			denied = err
			denials++
		case err != nil:
			return err
		}
	}
	if denials == len(tables) {
		return denied
	}
	return nil
}

// Date returns the Date header of a response: UTC, in whole seconds, as of when DynamoDB sent it.
//
// Price: 0.5 RCU.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	if err := s.enter(); err != nil {
		return time.Time{}, err
	}
	defer s.leave()
	return s.date(ctx, store.Journal)
}

func (s *Store) date(ctx context.Context, table store.Table) (time.Time, error) {
	out, err := s.touch(ctx, table)
	if err != nil {
		return time.Time{}, err
	}
	date, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		return time.Time{}, fmt.Errorf("dynamo: date: %w: the answer has no Date header", store.ErrUnavailable)
	}
	return date.UTC(), nil
}

// touch sends the cheapest request: an eventual GetItem of a key without an item.
func (s *Store) touch(ctx context.Context, table store.Table) (*dynamodb.GetItemOutput, error) {
	name := s.table(table)
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(name),
		Key:       sequencerKey(store.Key{Table: table, Partition: "ping", Sort: "ping"}),
	})
	if err != nil {
		return nil, readFailure(ctx, "GetItem", []string{name}, err)
	}
	return out, nil
}
