package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// All mutants are in one binary, since building it takes much longer than most of them live: each function that a mutant changes has
// a copy with the change beside it, and begins by going there if that mutant is the one that the environment names.
//
//	func (j *Journal) fill(position int64) error {
//		if mutantInForce == "fill-never" {
//			return j.fill_fill_never(position)
//		}
//		...

// mutantVariable is the environment variable with the name of the mutant in force.
const mutantVariable = "MILLRACE_MUTANT"

// root is the module's folder, seen from this one.
const root = "../.."

// built builds the simulation with every mutant, once, and returns the path of the binary. TestMain removes the folder.
var built = sync.OnceValues(func() (binary string, err error) {
	if mutantsFolder, err = os.MkdirTemp("", "mutants"); err != nil {
		return "", err
	}
	overlay, err := overlayOfMutants(mutantsFolder)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(mutantsFolder, "simulation.test")
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with all mutants: %w\n%s", err, output)
	}
	return binary, nil
})

var mutantsFolder string // empty while nothing was built

// overlayOfMutants writes the changed files and the description of them that go build reads, and returns its path.
func overlayOfMutants(dir string) (string, error) {
	files, err := mutatedFiles()
	if err != nil {
		return "", err
	}
	var description struct{ Replace map[string]string }
	description.Replace = map[string]string{}
	add := func(path, text string) error {
		original, err := filepath.Abs(filepath.Join(root, path))
		if err != nil {
			return err
		}
		description.Replace[original] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		return os.WriteFile(description.Replace[original], []byte(text), 0o600)
	}
	for path, f := range files {
		text, err := f.mutated()
		if err != nil {
			return "", err
		}
		inForce := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar mutantInForce = os.Getenv(%q)\n", f.tree.Name, mutantVariable)
		if err := cmp.Or(add(path, text), add(filepath.Dir(path)+"/mutantinforce.go", inForce)); err != nil {
			return "", err
		}
	}
	encoded, err := json.Marshal(description)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, encoded, 0o600)
}

// mutatedFile is a file of the product, and what mutants change in it.
type mutatedFile struct {
	path  string
	text  string
	files *token.FileSet
	tree  *ast.File
	hunks map[*ast.FuncDecl]map[string][]hunk // by mutant
}

// mutatedFiles returns every file that a mutant changes, by path.
func mutatedFiles() (map[string]*mutatedFile, error) {
	files := map[string]*mutatedFile{}
	for _, folder := range []string{"mutants/*.patch", "mutants/*/*.patch"} {
		patches, err := filepath.Glob(folder)
		if err != nil {
			return nil, err
		}
		for _, patch := range patches {
			m, err := readMutant(patch)
			if err != nil {
				return nil, err
			}
			for _, h := range m.hunks {
				f := files[h.path]
				if f == nil {
					if f, err = openMutated(h.path); err != nil {
						return nil, err
					}
					files[h.path] = f
				}
				if err := f.add(m.name, h); err != nil {
					return nil, fmt.Errorf("%s: %w", patch, err)
				}
			}
		}
	}
	return files, nil
}

func openMutated(path string) (*mutatedFile, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	f := &mutatedFile{path: path, text: string(text), files: token.NewFileSet(), hunks: map[*ast.FuncDecl]map[string][]hunk{}}
	f.tree, err = parser.ParseFile(f.files, path, text, parser.SkipObjectResolution)
	return f, err
}

// add adds a change to the function in which it is.
func (f *mutatedFile) add(mutant string, h hunk) error {
	if n := strings.Count(f.text, h.old); n != 1 {
		return fmt.Errorf("%s: these lines stand there %d times; has the code changed?\n%s", h.path, n, h.old)
	}
	at := strings.Index(f.text, h.old)
	for _, d := range f.tree.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || f.offset(fn.Pos()) > at || at+len(h.old) > f.offset(fn.End())+1 {
			continue
		}
		if f.hunks[fn] == nil {
			f.hunks[fn] = map[string][]hunk{}
		}
		f.hunks[fn][mutant] = append(f.hunks[fn][mutant], h)
		return nil
	}
	return fmt.Errorf("%s: these lines are not within one function:\n%s", h.path, h.old)
}

func (f *mutatedFile) offset(at token.Pos) int { return f.files.Position(at).Offset }

// source returns the text of a node, with its line's end.
func (f *mutatedFile) source(n ast.Node) string {
	return f.text[f.offset(n.Pos()):f.offset(n.End())] + "\n"
}

// mutated returns the file with a copy of each changed function for each mutant that changes it.
func (f *mutatedFile) mutated() (string, error) {
	text, copies := f.text, ""
	for _, d := range slices.Backward(f.tree.Decls) {
		fn, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		turns := ""
		for mutant, hunks := range f.hunks[fn] {
			name := fn.Name.Name + "_" + strings.ReplaceAll(mutant, "-", "_")
			changed := f.source(fn)
			for _, h := range hunks {
				changed = strings.Replace(changed, h.old, h.new, 1)
			}
			renamed, err := rename(changed, name)
			if err != nil {
				return "", fmt.Errorf("%s: %s for %s: %w", f.path, fn.Name.Name, mutant, err)
			}
			call, err := callOf(fn, name)
			if err != nil {
				return "", fmt.Errorf("%s: %s: %w", f.path, fn.Name.Name, err)
			}
			copies += "\n" + renamed
			turns += fmt.Sprintf("if mutantInForce == %q { %s }; ", mutant, call)
		}
		at := f.offset(fn.Body.Lbrace) + 1
		text = text[:at] + turns + text[at:]
	}
	return text + copies, nil
}

// rename returns the text of a function under another name.
func rename(text, name string) (string, error) {
	const head = "package p\n"
	tree, err := parser.ParseFile(token.NewFileSet(), "", head+text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	fn := tree.Decls[0].(*ast.FuncDecl)
	at := int(fn.Name.Pos()-tree.FileStart) - len(head)
	return text[:at] + name + text[at+len(fn.Name.Name):], nil
}

// callOf returns the statements that call another function as this one was called, and return what it returns.
func callOf(fn *ast.FuncDecl, name string) (string, error) {
	names := func(list *ast.FieldList) (all []string, err error) {
		for _, field := range list.List {
			if len(field.Names) == 0 {
				return nil, fmt.Errorf("what it takes must have names")
			}
			for _, n := range field.Names {
				if n.Name == "_" {
					return nil, fmt.Errorf("what it takes must have names")
				}
				all = append(all, n.Name)
			}
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				all[len(all)-1] += "..."
			}
		}
		return all, nil
	}
	arguments, err := names(fn.Type.Params)
	if err != nil {
		return "", err
	}
	if fn.Recv != nil {
		receiver, err := names(fn.Recv)
		if err != nil {
			return "", err
		}
		name = receiver[0] + "." + name
	}
	call := name + "(" + strings.Join(arguments, ", ") + ")"
	if fn.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}
