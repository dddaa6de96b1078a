package definition

import (
	"encoding/json"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/strict"
)

// maxPayload is the size limit of a schedule's payload, in bytes of JSON: the same as of any task's payload.
const maxPayload = 256 << 10

// each reads a list; element reads each of its elements.
func each(element strict.Visit) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) { d.List(n, path, element) }
}

func duration(to *time.Duration) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) { *to = d.Duration(n, path) }
}

// pause reads a duration that may be zero; nil means that none was given.
func pause(to **time.Duration) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if length, ok := d.Length(n, path); ok {
			*to = &length
		}
	}
}

func boolean(to *bool) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) { *to = d.Boolean(n, path) }
}

func word(to *string, words ...string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) { *to = d.OneOf(n, path, words...) }
}

func attempts(to *int) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		number, ok := d.Integer(n, path)
		if ok && number < 1 && number != -1 {
			d.Fail(n, path, "want at least 1, or -1 for no end")
		}
		*to = number
	}
}

func retries(to **int) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		number, ok := d.Integer(n, path)
		if ok && number < -1 {
			d.Fail(n, path, "want at least 0, or -1 for no end")
		}
		*to = &number
	}
}

func ranking(to *int) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) { *to, _ = d.Integer(n, path) }
}

// parallel reads how many tasks may run at once: a number from 1, or a share of this machine's cores, such as 0.5, which
// is at least one task, or -1 for one task per core (as in Sling's job handling).
func parallel(to *int) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if n.Value == "-1" {
			*to = runtime.NumCPU()
			return
		}
		number := d.Number(n, path)
		switch {
		case number == 0: // Number has reported it
		case number < 1:
			*to = max(1, int(math.Round(number*float64(runtime.NumCPU()))))
		case number != math.Trunc(number) || number > math.MaxInt32:
			d.Fail(n, path, "want a whole number from 1, a share of the cores, such as 0.5, or -1 for as many as there are")
		default:
			*to = int(number)
		}
	}
}

func weights(to *map[string]int) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = map[string]int{}
		d.Map(n, path, "weights by fairness key", func(key, value *strict.Node, at string) {
			if err := checkPattern(key.Value); err != nil {
				d.Fail(key, at, "%v", err)
			}
			weight, ok := d.Integer(value, at)
			if ok && weight < 1 {
				d.Fail(value, at, "want a weight of at least 1")
			}
			(*to)[key.Value] = weight
		})
	}
}

func topicPattern(d *strict.Document, n *strict.Node, path string) string {
	text := d.Text(n, path)
	if text != "" && !validTopicPattern(text) {
		d.Fail(n, path, "%q is no topic, nor one with * or . at its end", text)
	}
	return text
}

func cronExpression(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.Text(n, path); *to == "" {
			return
		}
		if _, err := cron.Parse(*to); err != nil {
			d.Fail(n, path, "%v", err)
		}
	}
}

// interval reads one of [Intervals], in any case, as Dark does.
func interval(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		text := d.Text(n, path)
		names := slices.Sorted(maps.Keys(Intervals))
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, text) })
		if at < 0 {
			if text != "" {
				d.Fail(n, path, "%q is none of %s", text, strings.Join(names, ", "))
			}
			return
		}
		*to = names[at]
	}
}

func date(to *time.Time) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		text := d.Text(n, path)
		if text == "" {
			return
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			d.Fail(n, path, "%q is no time such as 2026-03-01T12:00:00Z", text)
			return
		}
		*to = at.UTC().Truncate(time.Microsecond)
	}
}

func zone(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.Text(n, path); *to == "" {
			return
		}
		if _, err := cron.Zone(*to); err != nil {
			d.Fail(n, path, "%v", err)
		}
	}
}

func payload(to *json.RawMessage) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.JSON(n, path, maxPayload); string(*to) == "null" {
			d.Fail(n, path, "want a value, or no payload at all")
		}
	}
}
