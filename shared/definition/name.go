package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/strict"
)

// MaxName is the greatest length of a name in bytes, MaxPath that of a job's path.
const (
	MaxName = 255
	MaxPath = 500
)

// name reads a name, which becomes a segment of paths.
func name(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		text := d.Text(n, path)
		if text != "" && checkName(d, n, path, text) {
			*to = text
		}
	}
}

func checkName(d *strict.Document, n *strict.Node, path, text string) bool {
	err := ValidName(text)
	if err != nil {
		d.Fail(n, path, "%v", err)
	}
	return err == nil
}

// ValidName returns nil if text may be the name of a source, a collection, a handler, a queue or a schedule: 1 to
// [MaxName] bytes without slashes and control characters.
func ValidName(text string) error {
	switch {
	case text == "" || len(text) > MaxName:
		return fmt.Errorf("a name has 1 to %d bytes", MaxName)
	case strings.Contains(text, "/"):
		return fmt.Errorf("a name has no slash")
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("a name has no control characters")
	}
	return nil
}

// ValidPath returns nil if text may be the path of a job or a job chain: /a/b, at most [MaxPath] bytes, without empty
// segments and control characters.
func ValidPath(text string) error {
	switch {
	case !strings.HasPrefix(text, "/"):
		return fmt.Errorf("a path begins with /")
	case len(text) > MaxPath:
		return fmt.Errorf("a path has at most %d bytes", MaxPath)
	case strings.HasSuffix(text, "/") || strings.Contains(text, "//"):
		return fmt.Errorf("a path has no empty segments")
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("a path has no control characters")
	}
	return nil
}

// orderID reads the id of an order.
func orderID(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		if *to = d.Text(n, path); *to == "" {
			return
		}
		if err := ValidOrderID(*to); err != nil {
			d.Fail(n, path, "%v", err)
		}
	}
}

// ValidOrderID returns nil if text may be the id of an order: 1 to [MaxPath] bytes of UTF-8 without control characters.
func ValidOrderID(text string) error {
	switch {
	case text == "" || len(text) > MaxPath:
		return fmt.Errorf("the id of an order has 1 to %d bytes", MaxPath)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("the id of an order is UTF-8 without control characters")
	}
	return nil
}

// anyJobPath reads a path that a task may have.
func anyJobPath(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		text := d.Text(n, path)
		if text == "" {
			return
		}
		if err := ValidPath(text); err != nil {
			d.Fail(n, path, "%v", err)
			return
		}
		if topic, ok := topicOf(text); ok && !ValidTopic(topic) {
			d.Fail(n, path, "a topic is of letters, digits, _ and -, in segments with a slash between them")
			return
		}
		*to = text
	}
}

// jobPath reads a path under which a job may be declared.
func jobPath(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		anyJobPath(to)(d, n, path)
		for _, own := range ownSections {
			if strings.HasPrefix(*to, own.root) {
				d.Fail(n, path, "what is below %s is declared under %s", own.root, own.section)
			}
		}
	}
}

// ownSections are the sections of a set that declare jobs, with the roots of their paths.
var ownSections = []ownSection{{"/sources/", "sources"}, {"/canvases/", "handlers"}}

type ownSection struct{ root, section string }

// HasOwnSection reports whether a job is a source's collection or a handler by its path: then it exists only as long as it is declared.
func HasOwnSection(path string) bool {
	return slices.ContainsFunc(ownSections, func(own ownSection) bool { return strings.HasPrefix(path, own.root) })
}

// chainPath reads the path of a job chain. It has no comma, since orders are named PATH,ID.
func chainPath(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		anyJobPath(to)(d, n, path)
		if strings.Contains(*to, ",") {
			d.Fail(n, path, "the path of a job chain has no comma")
		}
	}
}
