package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A start, or a copy, that is refused for a setting names it, and has changed nothing.
func TestAMistakeInASettingChangesNothing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.yaml")
	for name, c := range map[string]struct {
		secret string
		args   []string
		want   string
	}{
		"signing secret": {secret: "whsec_short", args: []string{"serve"}, want: "MILLRACE_SIGNING_SECRET"},
		"file":           {args: []string{"serve", "--config", none}, want: "--config"},
		"drain":          {args: []string{"serve", "--drain", "soon"}, want: "--drain"},
		"notifier":       {args: []string{"serve", "--bell", "x"}, want: "--bell"},
		"store":          {args: []string{"serve", "--store", "x"}, want: "--store"},
		"copy":           {args: []string{"copy", "--from", "x", "--to", "y"}, want: "--from: config: the store"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for _, variable := range []string{"STORE", "BELL", "CONFIG", "DRAIN", "TOKENS", "SECRETS", "LOG", "WORKERS"} {
				t.Setenv("MILLRACE_"+variable, "")
			}
			t.Setenv("MILLRACE_ADMIN_TOKEN", "s")
			t.Setenv("MILLRACE_SIGNING_SECRET", c.secret)
			if c.args[0] == "serve" {
				c.args = append(c.args, "--listen", "127.0.0.1:0")
			}
			var said bytes.Buffer
			status := run(t.Context(), c.args, console{out: &said, err: &said})
			left, err := os.ReadDir(dir)
			if status != statusUsage || !strings.Contains(said.String(), c.want) || len(left) > 0 || err != nil {
				t.Errorf("status %d, %q; it has left %v, %v; want status %d and %q", status, said.String(), left, err, statusUsage, c.want)
			}
		})
	}
}
