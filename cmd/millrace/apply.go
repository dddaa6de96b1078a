package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/definition"
)

type applyCommand struct {
	remote
	format
	File   string `arg:"" help:"File of definitions, in YAML or JSON; - is standard input."`
	DryRun bool   `help:"Only print what would change."`
}

func (applyCommand) Help() string {
	return `Examples:

    millrace apply definitions.yaml --dry-run
    millrace apply definitions.yaml

The file replaces what is in force as a whole, all or nothing: what it does not declare is removed. Each object that changes is
printed: + added, ~ replaced (with what differs in it), - removed. Every mistake is printed with its line. New commands and the
sections tokens, journal, history, targets, metrics, dashboard, drain and file_orders are only taken from the server's own file, when it starts.`
}

// Run applies the file and prints what has changed.
func (a applyCommand) Run(ctx context.Context, c console) error {
	return a.on(c, func(server *client.Client) error {
		text, err := a.read(c)
		if err != nil {
			return usageError{err}
		}
		before, err := server.Definitions(ctx)
		if err != nil {
			return err
		}
		changes, err := server.Apply(ctx, text, a.DryRun)
		if err != nil {
			return a.located(err)
		}
		return a.print(c, changes, differences(before, text))
	})
}

func (a applyCommand) read(c console) ([]byte, error) {
	if a.File == "-" {
		return io.ReadAll(c.in)
	}
	return os.ReadFile(a.File)
}

// mistakes is the refusal of a file, with a text that names its lines.
type mistakes struct {
	refusal error
	text    string
}

func (m mistakes) Error() string { return m.text }
func (m mistakes) Unwrap() error { return m.refusal }

// located returns a refusal with a line FILE:LINE: PATH: MESSAGE for each mistake.
func (a applyCommand) located(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || len(refused.Fields) == 0 {
		return err
	}
	name := a.File
	if name == "-" {
		name = "standard input"
	}
	var b strings.Builder
	b.WriteString("nothing was applied:")
	for _, f := range refused.Fields {
		b.WriteString("\n  " + name)
		message := f.Message
		if rest, ok := strings.CutPrefix(message, "line "); ok {
			line, said, _ := strings.Cut(rest, ": ")
			b.WriteString(":" + line)
			message = said
		}
		if path, inside := strings.CutPrefix(f.Location, "body."); inside {
			message = path + ": " + message
		}
		b.WriteString(": " + message)
	}
	return mistakes{err, b.String()}
}

// differences returns what differs in each object of two documents, by its key. It only adds detail: which objects have changed
// is for the server to say.
func differences(before, after []byte) map[string][]definition.Difference {
	old, err := definition.Read("the server", before)
	if err != nil {
		return nil
	}
	fresh, err := definition.Read("the file", after)
	if err != nil {
		return nil
	}
	return definition.Differences(old, fresh)
}

func (a applyCommand) print(c console, changes client.Changes, inside map[string][]definition.Difference) error {
	switch a.Output {
	case "json":
		return printJSON(c.out, changes)
	case "jsonl":
		return printLines(c.out, linesOf(changes))
	}
	for _, line := range linesOf(changes) {
		fmt.Fprintln(c.out, map[string]string{"added": "+", "replaced": "~", "removed": "-"}[line.Change], line.Key)
		if line.Change != "replaced" {
			continue
		}
		for _, d := range inside[line.Key] {
			fmt.Fprintf(c.out, "    %s: %s → %s\n", d.Name, orNone(d.Before), orNone(d.After))
		}
	}
	for _, warning := range changes.Warnings {
		c.note("warning: %s", warning)
	}
	said := fmt.Sprintf("%d added, %d replaced, %d removed", len(changes.Added), len(changes.Replaced), len(changes.Removed))
	if a.DryRun {
		said += "; nothing was changed, as this was a dry run"
	}
	c.note("%s", said)
	return nil
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// changed is one object that changes.
type changed struct {
	Change string `json:"change"` // added, replaced or removed
	Key    string `json:"key"`
}

func linesOf(c client.Changes) []changed {
	var all []changed
	for _, group := range []struct {
		change string
		keys   []string
	}{{"added", c.Added}, {"replaced", c.Replaced}, {"removed", c.Removed}} {
		for _, key := range group.keys {
			all = append(all, changed{group.change, key})
		}
	}
	return all
}
