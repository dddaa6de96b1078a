package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain makes the test's binary a program that does not start where a test starts it: its arguments are then a command, not
// flags of tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "there is no token")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestAChildThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Program{Ready: "ready at %s\n"}.start(t.Context(), nil, "serve")
	if err == nil || !strings.Contains(err.Error(), "there is no token") {
		t.Errorf("start = %v, want what the program printed: that there is no token", err)
	}
}
