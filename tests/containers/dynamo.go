package containers

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/millrace/millrace/shared/store/dynamo"
)

// AWS returns a configuration of the SDK whose requests go to LocalStack.
func AWS(t testing.TB) aws.Config {
	t.Helper()
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(LocalStack(t)),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Prefix returns a table prefix that no other test has.
func Prefix() string { return "t" + strings.ToLower(rand.Text()[:12]) }

// Dynamo returns a store in DynamoDB with fresh tables, closed when the test ends.
func Dynamo(t testing.TB) *dynamo.Store {
	t.Helper()
	cfg := AWS(t)
	s, err := dynamo.Open(context.Background(), dynamo.Options{Prefix: Prefix(), AWS: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.CreateTables(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}
