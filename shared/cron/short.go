package cron

import (
	"strings"
	"time"
)

// shorts maps the names that begin with "@" to the expressions that they stand for.
var shorts = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// readShort reads "@daily" and the like, or "@every" with a length of time.
func (x *Expression) readShort(text string, words []word) (err error) {
	name := strings.ToLower(words[0].text)
	if name == "@every" {
		return x.readEvery(text, words)
	}
	long, known := shorts[name]
	if !known {
		return refuse(text, words[0].offset, "want @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every")
	}
	if len(words) > 1 {
		return refuse(text, words[1].offset, "nothing may follow %s", name)
	}
	return x.readClassic(long, split(long))
}

// readEvery reads the length after "@every".
func (x *Expression) readEvery(text string, words []word) error {
	switch len(words) {
	case 1:
		return refuse(text, len(text), "@every needs a length of time, as 90s, 1h30m or 7d")
	case 2:
	default:
		return refuse(text, words[2].offset, "nothing may follow the length of time; write it without spaces, as 1h30m")
	}
	length, err := readLength(text, words[1])
	x.every = length
	return err
}

// units are the units of lengths of time, the larger first.
var units = [...]struct {
	letter byte
	length int64 // in seconds
}{{'D', day}, {'H', hour}, {'M', minute}, {'S', 1}}

// readLength reads numbers with units, the larger first, or a number of seconds: at least a second, less than the whole
// time in which expressions fire.
func readLength(text string, w word) (time.Duration, error) {
	r := readerOf(text, w, &field{name: "the length of time"})
	var total int64
	misplaced := func() error {
		return r.refuse(r.pos, "want whole seconds, in the units d, h, m and s, each at most once and the larger first, not %s", r.shown())
	}
	for next := 0; r.pos < r.end; next++ {
		if c := r.peek(); next > 0 && (c < '0' || c > '9') { // as after the m of 500ms
			return 0, misplaced()
		}
		n, err := r.number()
		if err != nil {
			return 0, err
		}
		if r.pos == r.end && next == 0 { // seconds, without a unit
			next = len(units) - 1
		} else {
			for next < len(units) && !r.take(units[next].letter) {
				next++
			}
		}
		if next == len(units) {
			return 0, misplaced()
		}
		total += int64(n) * units[next].length
	}
	if total < 1 || total >= horizon {
		return 0, r.refuse(w.offset, "want at least a second, and less than %d years", years)
	}
	return time.Duration(total) * time.Second, nil
}
