package architecture_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocsAreTrue: a package comment that has a map of files names every production file of the package and no other; one that
// says what the package imports ("It imports event, store/faulty and the standard library.") names every package of this module
// that its production files import, and no other. Packages under shared, and the client, must say it.
func TestDocsAreTrue(t *testing.T) {
	t.Parallel()
	maps, sentences := 0, 0
	for path := range packages(t) {
		p, err := readSource(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range append(p.mapMistakes(), p.importMistakes()...) {
			t.Errorf("%s: the package comment %s", path, wrong)
		}
		_, says := saidImports(p.doc)
		if !says && within(path, "shared", "client") {
			t.Errorf("%s: the package comment does not say what the package imports", path)
		}
		if says {
			sentences++
		}
		if len(mappedFiles(p.doc)) > 0 {
			maps++
		}
	}
	if maps == 0 || sentences == 0 {
		t.Errorf("%d maps of files and %d sentences about imports were found", maps, sentences)
	}
}

// source is what the rules about package comments look at; tests are left out.
type source struct {
	doc     string   // the package comment
	files   []string // .go files but doc.go, for every platform and build tag
	imports []string // packages of this module, by their paths inside it, sorted
}

func readSource(dir string) (source, error) {
	var s source
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return s, err
		}
		s.doc += file.Doc.Text()
		if name != "doc.go" {
			s.files = append(s.files, name)
		}
		s.imports = append(s.imports, inModule(file.Imports)...)
	}
	slices.Sort(s.imports)
	s.imports = slices.Compact(s.imports)
	return s, nil
}

func inModule(specs []*ast.ImportSpec) (paths []string) {
	for _, spec := range specs {
		path, err := strconv.Unquote(spec.Path.Value)
		if inside, ours := strings.CutPrefix(path, module); err == nil && ours {
			paths = append(paths, inside)
		}
	}
	return paths
}

// mapLine is a line of a map of files: an indented line that begins with the names of one or several files.
var mapLine = regexp.MustCompile(`(?m)^\t(\w+\.go(?:, \w+\.go)*)(?:\s|$)`)

// mappedFiles returns the files that a package comment's map names, in its order.
func mappedFiles(doc string) (names []string) {
	for _, line := range mapLine.FindAllStringSubmatch(doc, -1) {
		names = append(names, strings.Split(line[1], ", ")...)
	}
	return names
}

func (s source) mapMistakes() (wrong []string) {
	named := mappedFiles(s.doc)
	if len(named) == 0 {
		return nil
	}
	for i, name := range named {
		switch {
		case slices.Contains(named[:i], name):
			wrong = append(wrong, "names "+name+" twice")
		case !slices.Contains(s.files, name):
			wrong = append(wrong, "names "+name+", which does not exist")
		}
	}
	for _, name := range s.files {
		if !slices.Contains(named, name) {
			wrong = append(wrong, "does not name "+name)
		}
	}
	return wrong
}

var (
	aside    = regexp.MustCompile(`\s*\([^()]*\)`)
	imports  = regexp.MustCompile(`\b(?:It|The package) imports ([^;:]*?)(?:[;:]|\.(?:\s|$))`)
	between  = regexp.MustCompile(`,? and |, `)
	ourNames = regexp.MustCompile(`^[a-z]+(/[a-z]+)*$`)
)

// saidImports returns the packages of this module that a comment says the package imports, and whether it says so at all. They are
// single words, as paths or their last parts, between commas; anything else in the list is of another module ("the AWS SDK"). What
// stands in parentheses is skipped.
func saidImports(doc string) (names []string, says bool) {
	found := imports.FindStringSubmatch(strings.Join(strings.Fields(aside.ReplaceAllString(doc, "")), " "))
	if found == nil {
		return nil, false
	}
	for _, name := range between.Split(found[1], -1) {
		if ourNames.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, true
}

func (s source) importMistakes() (wrong []string) {
	names, says := saidImports(s.doc)
	if !says {
		return nil
	}
	left := slices.Clone(s.imports)
	for _, name := range names {
		at := slices.IndexFunc(left, func(path string) bool { return path == name || strings.HasSuffix(path, "/"+name) })
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("says that it imports %s, which it does not", name))
			continue
		}
		left = slices.Delete(left, at, at+1)
	}
	for _, path := range left {
		wrong = append(wrong, "does not say that it imports "+path)
	}
	return wrong
}

// TestUntrueDocsAreNoticed: the rules refuse what they are there to refuse.
func TestUntrueDocsAreNoticed(t *testing.T) {
	t.Parallel()
	files, imported := []string{"a.go", "b.go"}, []string{"shared/event", "shared/store"}
	for _, c := range []struct {
		name, doc string
		mistakes  int
	}{
		{"true", "Package p.\n\n\ta.go, b.go  both\n\nIt imports store and event (for\ntime, [event.ID]), and the standard library.\n", 0},
		{"true of the rest", "It imports event and store; not the AWS SDK, config and api.\n", 0},
		{"no map and no sentence", "Package p reads a.go.\n", 0},
		{"a file is missing", "Package p.\n\n\ta.go  one\n", 1},
		{"a file is gone", "Package p.\n\n\ta.go  one\n\tb.go  two\n\tc.go  three\n", 1},
		{"a file is there twice", "Package p.\n\n\ta.go  one\n\ta.go, b.go  two\n", 1},
		{"an import is missing", "The package imports store.\n", 1},
		{"an import is gone", "It imports event, journal and store.\n", 1},
		{"no imports", "It imports only the standard library.\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := source{doc: c.doc, files: files, imports: imported}
			if wrong := append(p.mapMistakes(), p.importMistakes()...); len(wrong) != c.mistakes {
				t.Errorf("mistakes = %q, want %d", wrong, c.mistakes)
			}
		})
	}
}
