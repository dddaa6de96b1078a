package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// format is how results are printed.
type format struct {
	Output string `short:"o" help:"How to print: table for people, json one document, jsonl one object a line." enum:"table,json,jsonl" default:"table"`
}

// timeLayout shows what an EventId encodes.
const timeLayout = "2006-01-02 15:04:05.000000"

// table prints rows of cells under a heading, in columns.
func table(w io.Writer, heading string, rows func(row func(cells ...any))) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintln(t, heading)
	rows(row)
	return t.Flush()
}

// printJSON prints a value as one indented document.
func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// printLines prints each value as JSON on a line of its own.
func printLines[T any](w io.Writer, values []T) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for _, value := range values {
		if err := e.Encode(value); err != nil {
			return err
		}
	}
	return b.Flush()
}

// keyText shows a key in a table.
func keyText(k event.Key) string {
	if k.TaskID != "" {
		return k.Path + " task " + k.TaskID
	}
	if k.Path == "" {
		return "-"
	}
	return k.Path
}

// fieldsText shows the fields of an event in a table: name=value, texts without quotes where they are plain.
func fieldsText(members []byte) string {
	var b strings.Builder
	err := client.Members(members, func(name string, value []byte) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + plain(value))
	})
	if err != nil {
		return string(members)
	}
	return b.String()
}

// plain returns a JSON text without its quotes, if it reads the same without.
func plain(value []byte) string {
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" || strings.ContainsAny(text, " \t\r\n\"=") {
		return string(value)
	}
	return text
}

// count returns a number with its noun, such as "1 event" or "2 events".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
