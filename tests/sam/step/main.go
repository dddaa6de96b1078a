// Command step is a Lambda function such as users have: it is sent a step of an order as JSON, and returns variables that the
// order has from then on.
package main

import (
	"fmt"

	"github.com/aws/aws-lambda-go/lambda"
)

// step is what it reads of an attempt.
type step struct {
	Payload struct {
		N int `json:"n"`
	} `json:"payload"`
	Order struct {
		NodeID string `json:"nodeId"`
	} `json:"order"`
}

// expected is what n is at a node.
var expected = map[string]int{"A": 1, "BB": 2}

func main() {
	lambda.Start(func(s step) (map[string]any, error) {
		if want := expected[s.Order.NodeID]; s.Payload.N != want {
			return nil, fmt.Errorf("n is %d at node %s, want %d", s.Payload.N, s.Order.NodeID, want)
		}
		return map[string]any{"variables": map[string]any{"n": s.Payload.N + 1}}, nil
	})
}
