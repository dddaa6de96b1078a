// Command invoke runs one function once under sam local and prints its response: invoke FUNCTION PAYLOAD. It makes fresh
// tables and a queue first, and declares what the samples need. scripts/invoke starts it with what it needs.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/tests/sam"
	"github.com/millrace/millrace/tests/samples"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, function, payload string) error {
	const prefix = "invoke"
	if err := errors.Join(tables(ctx, prefix), queue(ctx, prefix)); err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "invoke")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	admin := samples.Tokens()[0].SHA256
	stack, err := sam.Build(ctx, sam.Config{
		Root: root, Dir: dir, Endpoint: os.Getenv("MILLRACE_TEST_DYNAMODB_CONTAINERS"), Admin: hex.EncodeToString(admin[:]),
		Vars: map[string]string{"MILLRACE_STORE": "dynamodb:" + prefix, "MILLRACE_BELL": "sqs:" + prefix},
	})
	if err != nil {
		return err
	}
	path, err := filepath.Abs(payload)
	if err != nil {
		return err
	}
	answer, failure, err := stack.Invoke(ctx, function, path)
	if err != nil {
		return err
	}
	fmt.Printf("%s%s\n", answer, failure)
	return nil
}

// localStack is how to reach it from this machine.
func localStack() aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(os.Getenv("MILLRACE_TEST_DYNAMODB")),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

func tables(ctx context.Context, prefix string) error {
	cfg := localStack()
	s, err := dynamo.Open(ctx, dynamo.Options{Prefix: prefix, AWS: &cfg})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.CreateTables(ctx); err != nil {
		return err
	}
	return samples.Declare(ctx, s)
}

func queue(ctx context.Context, name string) error {
	_, err := sqs.NewFromConfig(localStack()).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name)})
	return err
}
