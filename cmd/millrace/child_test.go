package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain makes the test's binary act as the program where a test starts it: its arguments are then a command, not flags
// of tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
	}
	os.Exit(m.Run())
}

func TestAChildThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := startChild(t.Context(), []string{"MILLRACE_ADMIN_TOKEN=", "MILLRACE_TOKENS=", "MILLRACE_CONFIG="}, "serve")
	if err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("startChild = %v, want what the program printed: that there is no token", err)
	}
}
