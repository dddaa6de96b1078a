package main

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// results are the rows of a measurement.
type results struct {
	heading string
	rows    [][]any
}

func (r *results) add(cells ...any) { r.rows = append(r.rows, cells) }

// print prints the rows as a table, or as JSON objects with the heading's words as names.
func (r *results) print(w io.Writer, f format, names []string) error {
	if f.Output == "table" {
		return table(w, r.heading, func(row func(...any)) {
			for _, cells := range r.rows {
				row(cells...)
			}
		})
	}
	objects := make([]map[string]any, len(r.rows))
	for i, cells := range r.rows {
		objects[i] = make(map[string]any, len(cells))
		for k, cell := range cells {
			objects[i][names[k]] = cell
		}
	}
	if f.Output == "json" {
		return printJSON(w, objects)
	}
	return printLines(w, objects)
}

// rate is a number per second, shown with thousands apart.
type rate float64

// String returns it for people; 0, which was not measured, is "-".
func (r rate) String() string {
	if r == 0 {
		return "-"
	}
	digits := strconv.FormatInt(int64(r+0.5), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// took is a duration, shown in milliseconds.
type took time.Duration

// String shows it for people.
func (t took) String() string { return fmt.Sprintf("%.2f ms", float64(t)/float64(time.Millisecond)) }

// MarshalJSON returns milliseconds.
func (t took) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(t)/float64(time.Millisecond), 'f', 3, 64), nil
}

// unmeasured is a cell that a row has no value for.
type unmeasured struct{}

// String shows it for people.
func (unmeasured) String() string { return "-" }

// MarshalJSON returns null.
func (unmeasured) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
