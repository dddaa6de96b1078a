package containers

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Queue returns the URL of a fresh standard queue of SQS, without a dead-letter queue, deleted when the test ends.
func Queue(t testing.TB) (url string) {
	t.Helper()
	client := sqs.NewFromConfig(AWS(t))
	created, err := client.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: aws.String(Prefix())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: created.QueueUrl})
	})
	return aws.ToString(created.QueueUrl)
}
