package dynamo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/tests/containers"
)

func TestCreateTablesMayBeCalledAgainAndAtOnce(t *testing.T) {
	t.Parallel()
	cfg, prefix := containers.AWS(t), containers.Prefix()
	s := open(t, dynamo.Options{Prefix: prefix, AWS: &cfg})
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping without tables = %v, want ErrUnavailable", err)
	}
	results := make(chan error, 2)
	for range cap(results) {
		go func() { results <- s.CreateTables(t.Context()) }()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Errorf("CreateTables at once = %v, want nil", err)
		}
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Errorf("CreateTables again = %v, want nil", err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
	client := dynamodb.NewFromConfig(cfg)
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(prefix + "-work")})
	if err != nil {
		t.Fatal(err)
	}
	if d := ttl.TimeToLiveDescription; d.TimeToLiveStatus != types.TimeToLiveStatusEnabled || *d.AttributeName != "x" {
		t.Errorf("time-to-live = %v of %v, want enabled of x", d.TimeToLiveStatus, aws.ToString(d.AttributeName))
	}
}

func TestOpenRefusesPrefixesThatCannotBeginATableName(t *testing.T) {
	t.Parallel()
	cfg := nowhere()
	for _, prefix := range []string{"", "a b", "grün", "a/b", string(make([]byte, 300))} {
		if _, err := dynamo.Open(context.Background(), dynamo.Options{Prefix: prefix, AWS: &cfg}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Open(%q) = %v, want ErrInvalid", prefix, err)
		}
	}
}
