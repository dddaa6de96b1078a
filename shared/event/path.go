package event

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxPaths is the largest number of paths in one query.
const MaxPaths = 1000

// PathQuery selects objects by path (as in JobScheduler's event API):
//
//	/a      the object /a
//	/a/     everything below /a, at any depth; not /a itself
//	/a/*    what is directly below /a
//	/*      what is directly below the root
//	/       everything
//
// A key without a leading slash, which a custom event may have, is matched as if it had one. The zero PathQuery selects
// nothing. A PathQuery is immutable.
type PathQuery struct {
	all    bool
	single string // the only path, if it names a single object

	// reaches has the parts of the query by path. Paths are without the leading slash; those of folders have a trailing
	// one.
	reaches map[string]reach
}

// reach is a set of what a query selects at one path.
type reach uint8

const (
	itself reach = 1 << iota
	children
	subtree
)

// AllPaths selects every object.
func AllPaths() PathQuery { return PathQuery{all: true} }

// ParsePath reads the path query of a GET, which is the part of the URL's path (unescaped) after the resource's name: of
// "order/aFolder/|/b", "/aFolder/|/b". The leading slash of each path is optional; "" means everything. Refusals are
// [Invalid], at "path".
func ParsePath(remainder string) (PathQuery, error) {
	if remainder == "" {
		return AllPaths(), nil
	}
	var ps problems
	paths := strings.Split(remainder, "|")
	for i, path := range paths {
		if path == "" {
			ps.add(Invalid, "path", `has an empty path beside "|": leave the "|" out`)
		} else if path[0] != '/' {
			paths[i] = "/" + path
		}
	}
	if ps.reason != 0 {
		return PathQuery{}, ps.err()
	}
	return queryOf(paths, func(int) string { return "path" })
}

// queryOf compiles paths; location returns the location of the path of an index.
func queryOf(paths []string, location func(int) string) (PathQuery, error) {
	if len(paths) > MaxPaths {
		return PathQuery{}, refuse(Invalid, location(MaxPaths),
			fmt.Sprintf("is one of %d paths: a query has at most %d", len(paths), MaxPaths))
	}
	var ps problems
	q := PathQuery{reaches: make(map[string]reach, len(paths))}
	for i, path := range paths {
		if message := pathProblem(path); message != "" {
			ps.add(Invalid, location(i), message)
			continue
		}
		q.add(path)
	}
	if ps.reason != 0 {
		return PathQuery{}, ps.err()
	}
	if len(paths) == 1 && !q.all && q.reaches[paths[0][1:]] == itself {
		q.single = paths[0]
	}
	return q, nil
}

// pathProblem returns what is wrong with the form of the path, or "".
func pathProblem(path string) string {
	switch {
	case path == "":
		return `is empty: everything is "/"`
	case path[0] != '/':
		return fmt.Sprintf("%q does not begin with a slash: write %q", shorten(path), "/"+shorten(path))
	case !utf8.ValidString(path):
		return strconv.Quote(shorten(path)) + " is not UTF-8"
	case strings.Contains(path, "//"):
		return strconv.Quote(shorten(path)) + " has two slashes in a row: leave one out"
	case strings.Contains(strings.TrimSuffix(path, "/*"), "*"):
		return strconv.Quote(shorten(path)) + ` has a "*" that is not the whole last part: only "/folder/*" is possible`
	default:
		return ""
	}
}

func (q *PathQuery) add(path string) {
	path = path[1:]
	switch {
	case path == "":
		q.all = true
	case strings.HasSuffix(path, "/"):
		q.reaches[path] |= subtree
	case path == "*" || strings.HasSuffix(path, "/*"):
		q.reaches[path[:len(path)-1]] |= children
	default:
		q.reaches[path] |= itself
	}
}

// All reports whether the query selects every object.
func (q PathQuery) All() bool { return q.all }

// Single returns the path of the only object that the query can select; ok is false if it can select several.
func (q PathQuery) Single() (path string, ok bool) { return q.single, q.single != "" }

// Match reports whether the query selects the object of that path. Only a query for everything selects the empty path. It
// does not allocate; its time depends on the depth of path, not on the length of the query.
func (q PathQuery) Match(path string) bool {
	if q.all {
		return true
	}
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return false
	}
	return q.matchObject(path) || q.matchFolders(path)
}

// matchObject reports whether the query names the path itself.
func (q PathQuery) matchObject(path string) bool { return q.reaches[path]&itself != 0 }

// matchFolders reports whether the query selects the path by a folder that it lies in, from the root (the empty folder)
// down.
func (q PathQuery) matchFolders(path string) bool {
	for at := 0; at < len(path); {
		slash := strings.IndexByte(path[at:], '/')
		wanted := subtree
		if slash < 0 {
			wanted |= children
		}
		if q.reaches[path[:at]]&wanted != 0 {
			return true
		}
		if slash < 0 {
			return false
		}
		at += slash + 1
	}
	return false
}
