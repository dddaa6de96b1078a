package containers_test

import (
	"context"
	"os"
	"testing"

	"github.com/millrace/millrace/tests/containers"
)

func TestMain(m *testing.M) { os.Exit(containers.Run(m)) }

func TestDynamoAnswersAUsableStore(t *testing.T) {
	t.Parallel()
	s := containers.Dynamo(t)
	if err := s.Ping(context.Background()); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
}

func TestLocalStackIsOneForAllTests(t *testing.T) {
	t.Parallel()
	if first, second := containers.LocalStack(t), containers.LocalStack(t); first != second {
		t.Errorf("LocalStack = %s, then %s, want one endpoint", first, second)
	}
}
