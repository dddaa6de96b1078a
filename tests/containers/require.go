package containers

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// The variables that tests read.
const (
	EndpointVariable = "MILLRACE_TEST_DYNAMODB" // the endpoint of a LocalStack that runs already
	LeftOutVariable  = "MILLRACE_TEST_LEFT_OUT" // a file that gets a line for each test left out
)

// Require returns if containers can be started. Otherwise it skips the test, saying what it takes; in continuous
// integration (CI=true) it fails it. Short tests start none, since that takes minutes.
func Require(t testing.TB) {
	t.Helper()
	if testing.Short() && os.Getenv(EndpointVariable) == "" {
		t.Skip("left out of -short: needs a container, which takes minutes to start")
	}
	if err := engine(); err != nil {
		leaveOut(t, err)
	}
}

func leaveOut(t testing.TB, err error) {
	t.Helper()
	missing := fmt.Sprintf("needs a Docker engine (%v): install it from https://docs.docker.com/engine/install/, "+
		"or set %s to the endpoint of a LocalStack that runs already", err, EndpointVariable)
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	note(t, missing)
	t.Skip("left out: " + missing)
}

// engine returns nil if a Docker engine responds.
func engine() (err error) {
	defer func() { // the library panics where it finds no engine at all
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer provider.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return provider.Health(ctx)
}

// note adds a line to the list of what was left out.
func note(t testing.TB, missing string) {
	path := os.Getenv(LeftOutVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Logf("%s: %v", LeftOutVariable, err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s: %s\n", t.Name(), missing)
}
