package event

import "fmt"

const maxPath = 256 << 10 // bytes of a path in a body

// ParsePathBody reads the path query of a POST: {} for everything, {"path":"/a/"}, or {"paths":["/a/b","/a/x/"]} with 1
// to [MaxPaths] paths. Paths begin with a slash; in them, "|" is an ordinary character. Refusals are [Invalid], or [TooLarge] where a
// path has more than 256 KiB, at "body", "body.path", "body.paths[1]" and the like.
func ParsePathBody(body []byte) (PathQuery, error) {
	c, refused := open(body, "body")
	if refused != nil {
		return PathQuery{}, refused
	}
	if k := c.kind(); k != '{' {
		return PathQuery{}, refuse(Invalid, "body", "must be an object, {} for everything, not "+kindName(k))
	}
	b := pathBody{cursor: c}
	for more := c.enter(); more; more = c.next() {
		b.member()
	}
	switch {
	case b.reason != 0:
		return PathQuery{}, b.err()
	case b.given == "":
		return AllPaths(), nil
	default:
		return queryOf(b.paths, b.location)
	}
}

// pathBody is the state while one body is read.
type pathBody struct {
	*cursor
	problems
	given string // "path" or "paths", whichever has been read
	paths []string
}

func (b *pathBody) location(i int) string {
	if b.given == "path" {
		return "body.path"
	}
	return fmt.Sprintf("body.paths[%d]", i)
}

func (b *pathBody) member() {
	_, name := b.name()
	member := string(name)
	if member != "path" && member != "paths" {
		b.add(Invalid, "body."+shorten(member), "is unknown: a path query has path or paths only")
		b.value()
		return
	}
	if b.given != "" {
		b.add(Invalid, "body."+member, "is given together with "+b.given+": give one of them")
		b.value()
		return
	}
	b.given = member
	if member == "path" {
		b.path()
	} else {
		b.list()
	}
}

// path reads a path; queryOf checks its form later.
func (b *pathBody) path() {
	if k := b.kind(); k != '"' {
		b.add(Invalid, b.location(len(b.paths)), "must be a string, not "+kindName(k))
		b.paths = append(b.paths, "")
		b.value()
		return
	}
	path := string(unquote(b.value()))
	if len(path) > maxPath {
		b.add(TooLarge, b.location(len(b.paths)), fmt.Sprintf("has %d bytes: at most %d are possible", len(path), maxPath))
	}
	b.paths = append(b.paths, path)
}

func (b *pathBody) list() {
	if k := b.kind(); k != '[' {
		b.add(Invalid, "body.paths", "must be an array of strings, not "+kindName(k))
		b.value()
		return
	}
	if !b.enter() {
		b.add(Invalid, "body.paths", `is empty: give at least one path, or {} for everything`)
		return
	}
	for more := true; more; more = b.next() {
		b.path()
	}
}
