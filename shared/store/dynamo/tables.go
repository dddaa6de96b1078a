package dynamo

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

// prefixes matches the prefixes with which every table name has DynamoDB's 3 to 255 characters.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,243}$`)

func validPrefix(prefix string) error {
	if !prefixes.MatchString(prefix) {
		return fmt.Errorf("dynamo: %w: table prefix %q, want 1 to 243 of letters, digits, '_', '-' and '.'",
			store.ErrInvalid, prefix)
	}
	return nil
}

// table returns DynamoDB's name of a table of the port.
func (s *Store) table(t store.Table) string { return s.prefix + "-" + string(t) }

// CreateTables creates those of the three tables that are missing, on demand and with time-to-live, and waits until they
// can be used. It is for development and tests: it sets up neither recovery nor protection from deletion, which
// template.yaml does. It may be called again, and by several processes at once.
func (s *Store) CreateTables(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	for _, t := range tables {
		if err := s.createTable(ctx, s.table(t)); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := s.settle(ctx, s.table(t)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) createTable(ctx context.Context, name string) error {
	_, err := s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(layout.Partition), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(layout.Sort), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(layout.Partition), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(layout.Sort), KeyType: types.KeyTypeRange},
		},
	})
	if there := (*types.ResourceInUseException)(nil); err == nil || errors.As(err, &there) {
		return nil
	}
	return readFailure(ctx, "CreateTable", []string{name}, err)
}

// settle waits for a table to become active and switches its time-to-live on.
func (s *Store) settle(ctx context.Context, name string) error {
	for attempt := 0; ; attempt++ {
		out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)})
		if err != nil {
			return readFailure(ctx, "DescribeTable", []string{name}, err)
		}
		if out.Table.TableStatus == types.TableStatusActive {
			return s.expire(ctx, name)
		}
		if err := wait(ctx, attempt); err != nil {
			return fmt.Errorf("dynamo: waiting for table %s: %w", name, err)
		}
	}
}

// expire switches time-to-live on, unless it is: DynamoDB refuses to do that twice.
func (s *Store) expire(ctx context.Context, name string) error {
	if on, err := s.expires(ctx, name); on || err != nil {
		return err
	}
	_, err := s.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(layout.Expires), Enabled: aws.Bool(true),
		},
	})
	if err == nil {
		return nil
	}
	if on, _ := s.expires(ctx, name); on {
		return nil // another process switched it on
	}
	return readFailure(ctx, "UpdateTimeToLive", []string{name}, err)
}

// expires reports whether time-to-live is on, or about to be.
func (s *Store) expires(ctx context.Context, name string) (bool, error) {
	out, err := s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(name)})
	if err != nil {
		return false, readFailure(ctx, "DescribeTimeToLive", []string{name}, err)
	}
	d := out.TimeToLiveDescription
	return d != nil && d.TimeToLiveStatus != types.TimeToLiveStatusDisabled, nil
}
