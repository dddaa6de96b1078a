package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Results are the rows of a measurement. Each cell has a form for people, by fmt.Stringer, and one as JSON.
type Results struct {
	Heading string   // for people, with a tab between two columns
	Names   []string // of the columns in JSON
	Rows    [][]any
	Verdict string // what follows, for people; "" if nothing does
}

func newResults(heading string, names ...string) *Results {
	return &Results{Heading: heading, Names: names}
}

func (r *Results) add(cells ...any) { r.Rows = append(r.Rows, cells) }

// beside adds columns of another measurement of the same cases, which was made in this process.
func (r *Results) beside(inside *Results, columns ...string) {
	headings := strings.Split(inside.Heading, "\t")
	for _, column := range columns {
		at := slices.Index(headings, column)
		r.Heading += "\t" + column + " INSIDE"
		r.Names = append(r.Names, inside.Names[at]+"_in_process")
		for i := range r.Rows {
			var cell any = unmeasured{}
			if i < len(inside.Rows) {
				cell = inside.Rows[i][at]
			}
			r.Rows[i] = append(r.Rows[i], cell)
		}
	}
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

// size is a number of bytes, shown in MiB.
type size uint64

// String shows it for people.
func (s size) String() string { return fmt.Sprintf("%.1f MiB", float64(s)/(1<<20)) }

// kibibytes is a little memory.
type kibibytes float64

// String shows it for people.
func (k kibibytes) String() string { return fmt.Sprintf("%.1f KiB", float64(k)) }

// share is a part of a whole, shown as a percentage.
type share float64

// String shows it for people.
func (s share) String() string { return fmt.Sprintf("%.1f %%", 100*float64(s)) }
