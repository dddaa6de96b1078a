package dynamo_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store/dynamo"
)

// Against DynamoDB Local or LocalStack, set AWS_ENDPOINT_URL_DYNAMODB, AWS_REGION and any keys.
func ExampleOpen() {
	ctx := context.Background()
	s, err := dynamo.Open(ctx, dynamo.Options{Prefix: "dev"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	if err := s.CreateTables(ctx); err != nil { // in development only; template.yaml has the real ones
		fmt.Println(err)
		return
	}
	fmt.Println(s.Ping(ctx))
}
