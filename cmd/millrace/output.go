package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
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

// one prints one value as JSON.
func (f format) one(c console, value any) error {
	if f.Output == "json" {
		return printJSON(c.out, value)
	}
	return printLines(c.out, []any{value})
}

// line prints one value; as a table, only the text.
func (f format) line(c console, text string, value any) error {
	if f.Output != "table" {
		return f.one(c, value)
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}

// show prints one value, unless there is an error; as a table, with a line for each member.
func (f format) show(c console, value any, err error) error {
	if err != nil {
		return err
	}
	if f.Output != "table" {
		return f.one(c, value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	members := text[1 : len(text)-1]
	return table(c.out, "FIELD\tVALUE", func(row func(...any)) {
		_ = client.Members(members, func(name string, value []byte) { row(name, plain(value)) }) // just rendered
	})
}

// collect returns all that a list yields, never nil.
func collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	all := []T{}
	for element, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}

// list prints what a list yields, as listed does.
func list[T any](c console, f format, name string, list iter.Seq2[T, error], heading string, cells func(*T) []any) error {
	all, err := collect(list)
	if err != nil {
		return err
	}
	return listed(c, f, name, all, heading, cells)
}

// listed prints values: as a table, as a document with the list under its name, or a line for each.
func listed[T any](c console, f format, name string, all []T, heading string, cells func(*T) []any) error {
	switch f.Output {
	case "json":
		return printJSON(c.out, map[string][]T{name: all})
	case "jsonl":
		return printLines(c.out, all)
	}
	return table(c.out, heading, func(row func(...any)) {
		for i := range all {
			row(cells(&all[i])...)
		}
	})
}

// lined prints values: for people with a line of text for each, or as JSON.
func lined[T any](c console, f format, all []T, text func(*T) string) error {
	switch f.Output {
	case "json":
		return printJSON(c.out, all)
	case "jsonl":
		return printLines(c.out, all)
	}
	for i := range all {
		if _, err := fmt.Fprintln(c.out, text(&all[i])); err != nil {
			return err
		}
	}
	return nil
}

// when shows a time in a table.
func when(t client.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// brief shows the beginning of a value in a table.
func brief(value []byte) string {
	const most = 40
	text := strings.Join(strings.Fields(plain(value)), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
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
