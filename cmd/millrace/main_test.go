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
