package containers

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/localstack"
)

// Image is the last LocalStack that needs no account. DynamoDB in it is DynamoDB Local 3.1.0.
const Image = "localstack/localstack:4.14.0"

// shared is the container of this test process.
var shared struct {
	sync.Mutex
	owned     bool // Run will end it
	container *localstack.LocalStackContainer
	endpoint  string
	err       error
}

// Run runs the tests and ends the container that they started, if any. It returns the exit code.
func Run(m *testing.M) int {
	shared.Lock()
	shared.owned = true
	shared.Unlock()
	defer stop()
	return m.Run()
}

// LocalStack returns the endpoint of LocalStack, such as http://localhost:32768. See [Require] for what happens when
// there is no Docker engine.
func LocalStack(t testing.TB) (endpoint string) {
	t.Helper()
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" {
		return endpoint
	}
	Require(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.owned {
		t.Fatal("containers: TestMain must call containers.Run, which ends the container")
	}
	if shared.container == nil && shared.err == nil {
		start()
	}
	if shared.err != nil {
		t.Fatalf("containers: LocalStack: %v", shared.err)
	}
	return shared.endpoint
}

func start() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	shared.container, shared.err = localstack.Run(ctx, Image,
		testcontainers.WithLogger(log.NewNoopLogger()),
		testcontainers.WithEnv(map[string]string{
			"SERVICES": "dynamodb,sqs,s3", "EAGER_SERVICE_LOADING": "1", // or the first requests wait for their service
		}))
	if shared.err == nil {
		shared.endpoint, shared.err = shared.container.PortEndpoint(ctx, "4566/tcp", "http")
	}
}

func stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.container == nil {
		return
	}
	if err := testcontainers.TerminateContainer(shared.container); err != nil {
		fmt.Fprintln(os.Stderr, "containers: ending LocalStack:", err)
	}
}
