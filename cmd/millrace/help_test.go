package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestHelp: "millrace help" is as "millrace --help", and of a command as that with --help.
func TestHelp(t *testing.T) {
	t.Parallel()
	said := func(status int, args ...string) string {
		t.Helper()
		var out, stderr bytes.Buffer
		if got := run(t.Context(), args, console{strings.NewReader(""), &out, &stderr}); got != status {
			t.Errorf("millrace %q: status %d, want %d: %s", args, got, status, &stderr)
		}
		return out.String()
	}
	for _, command := range [][]string{{}, {"task"}, {"task", "list"}} {
		want, got := said(0, append(command, "--help")...), said(0, append([]string{"help"}, command...)...)
		if got != want || want == "" {
			t.Errorf("millrace help %q prints\n%s\nwant\n%s", command, got, want)
		}
	}
	said(2, "help", "tusk")
}
