package containers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/containers"
)

// told is a test that only records what it is told.
type told struct {
	testing.TB
	failed, skipped string
}

func (t *told) Helper()           {}
func (t *told) Name() string      { return "TestThatNeedsDocker" }
func (t *told) Fatal(args ...any) { t.failed = fmt.Sprint(args...); panic(t) }
func (t *told) Skip(args ...any)  { t.skipped = fmt.Sprint(args...); panic(t) }

// leaveOut tells a test that there is no engine.
func leaveOut(t *told) {
	defer func() { _ = recover() }() // as runtime.Goexit does in a real test
	containers.LeaveOut(t, errors.New("no such socket"))
}

func TestWithoutDockerATestIsLeftOutAndSaysWhatItTakes(t *testing.T) {
	list := filepath.Join(t.TempDir(), "left-out")
	t.Setenv("CI", "")
	t.Setenv(containers.LeftOutVariable, list)
	var got told
	leaveOut(&got)
	listed, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no such socket", "docs.docker.com", containers.EndpointVariable} {
		if !strings.Contains(got.skipped, want) || !strings.Contains(string(listed), want) {
			t.Errorf("skipped with %q, listed as %q, want both to say %q", got.skipped, listed, want)
		}
	}
	if !strings.HasPrefix(string(listed), "TestThatNeedsDocker: ") || !strings.HasSuffix(string(listed), "\n") {
		t.Errorf("list = %q, want a line of the test", listed)
	}
}

func TestWithoutDockerATestFailsInContinuousIntegration(t *testing.T) {
	t.Setenv("CI", "true")
	var got told
	leaveOut(&got)
	if !strings.Contains(got.failed, "docs.docker.com") || got.skipped != "" {
		t.Errorf("failed with %q, skipped with %q, want it failed, saying what it takes", got.failed, got.skipped)
	}
}
