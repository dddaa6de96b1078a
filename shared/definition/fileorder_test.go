package definition_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/strict"
)

const chainC = "job_chains: [{path: /c, nodes: [{id: a, job: /topics/t}, {id: b}]}]\n"

// readFile reads a server's own file.
func readFile(text string) (*definition.Set, error) {
	set := new(definition.Set)
	err := strict.Read("f", []byte(text), func(d *strict.Document, n *strict.Node, _ string) {
		definition.ReadSections(d, n, set, nil)
	})
	return set, err
}

func TestReadFileOrders(t *testing.T) {
	t.Parallel()
	set, err := readFile(chainC + `
file_orders:
  - {chain: /c, directory: /in, pattern: "*.csv", steady: 10s, done: {move_to: /out}}
  - {chain: /c, directory: "s3://bucket/in/", done: {remove: true}}
  - {chain: /c, directory: "s3://bucket"}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []definition.FileOrder{
		{Chain: "/c", Directory: "/in", Pattern: "*.csv", Steady: 10 * time.Second, Done: definition.FileDone{MoveTo: "/out"}},
		{Chain: "/c", Directory: "s3://bucket/in/", Done: definition.FileDone{Remove: true}},
		{Chain: "/c", Directory: "s3://bucket"},
	}
	if diff := cmp.Diff(want, set.FileOrders); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(string(set.JSON()), "bucket") {
		t.Errorf("the JSON shows file orders: %s", set.JSON())
	}
}

func TestReadRefusesFileOrders(t *testing.T) {
	t.Parallel()
	order := func(fields string) string { return chainC + "file_orders: [{" + fields + "}]" }
	for _, tt := range []struct{ text, want string }{
		{order("directory: /in"), "f:2: file_orders[0].chain: is missing"},
		{order("chain: /c"), "file_orders[0].directory: is missing"},
		{order("chain: /d, directory: /in"), `file_orders[0].chain: no job chain "/d" is declared`},
		{order("chain: /c, directory: in"), "file_orders[0].directory: want a directory such as /in, or s3://BUCKET/PREFIX"},
		{order("chain: /c, directory: s3://"), "file_orders[0].directory: want"},
		{order("chain: /c, directory: s3:///in"), "file_orders[0].directory: want"},
		{order("chain: /c, directory: /in, pattern: '[a'"), `file_orders[0].pattern: "[a" is no pattern`},
		{order("chain: /c, directory: /in, pattern: a/*"), `"a/*" is no pattern`},
		{order("chain: /c, directory: /in, steady: 0"), "file_orders[0].steady: want more than 0"},
		{order("chain: /c, directory: /in, done: {}"), "file_orders[0].done: want exactly one of move_to, remove"},
		{order("chain: /c, directory: /in, done: {remove: false}"), "file_orders[0].done.remove: want true"},
		{order("chain: /c, directory: /in, done: {remove: true, move_to: /out}"), "want exactly one of"},
		{order("chain: /c, directory: /in, done: {move_to: out}"), "file_orders[0].done.move_to: want"},
		{order("chain: /c, directory: /in}, {chain: /c, directory: /in"), "file_orders[1]: the file order /in is declared twice"},
	} {
		if _, err := readFile(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// File orders come from the server's file, and stay as they are whatever is applied through the API.
func TestFileOrdersComeFromTheFile(t *testing.T) {
	t.Parallel()
	var only *definition.FileOnly
	if _, err := definition.Read("f", []byte("file_orders: [{chain: /c, directory: /in}]")); !errors.As(err, &only) {
		t.Errorf("Read() = %v, want FileOnly", err)
	}
	s := newShelf(t)
	b := s.open()
	file, err := readFile(chainC + "file_orders: [{chain: /c, directory: /in}]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ApplyFile(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	before := s.events(t)
	if changes := apply(t, b, string(current(t, b).JSON())); !changes.Empty() || len(s.events(t)) != len(before) {
		t.Errorf("the set in force was applied, which changed %+v", changes)
	}
	apply(t, b, chainC+"jobs: [{path: /new}]")
	if _, _, err := current(t, b).PutQueue([]byte(`{"name": "q"}`)); err != nil {
		t.Errorf("PutQueue() = %v", err)
	}
	for name, catalog := range map[string]*definition.Catalog{"the catalog": b, "another one": s.open()} {
		if diff := cmp.Diff(file.FileOrders, current(t, catalog).FileOrders); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, try := range map[string]func() error{
		"Apply": func() error { _, err := b.Apply(t.Context(), read(t, "{}"), definition.FromAPI); return err },
		"Plan":  func() error { _, err := b.Plan(t.Context(), read(t, "{}"), definition.FromAPI); return err },
	} {
		err := try()
		if !errors.As(err, &only) || only.Mistakes[0].Path != "job_chains" {
			t.Errorf("%s() of a set without their chain = %v", name, err)
		}
	}
	file, err = readFile(chainC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ApplyFile(t.Context(), file); err != nil || len(current(t, b).FileOrders) != 0 {
		t.Errorf("a file without them left %v, %v", current(t, b).FileOrders, err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	got := read(t, `
jobs: [{path: /known}]
job_chains:
  - {path: /c, nodes: [{id: a, job: /x/lost}, {id: b, job: /known}, {id: c, fork: {branches: {x: [{job: /lost}]}}}, {id: d, fork: {each: v, job: /each}}, {id: e, job: /x/lost}, {id: f, job: /topics/t}]}
  - {path: /d, nodes: [{id: a, job: /known}]}
`).Warnings()
	tail := " is declared: its steps wait for instances that claim them"
	want := []string{"job chain /c: no job /each" + tail, "job chain /c: no job /lost" + tail, "job chain /c: no job /x/lost" + tail}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDiffOfLocks(t *testing.T) {
	t.Parallel()
	got := definition.Diff(read(t, "locks: [{name: a}, {name: b}]"), read(t, "locks: [{name: b, max_shared: 2}, {name: c}]"))
	want := definition.Changes{Added: []string{"Lock:/c"}, Replaced: []string{"Lock:/b"}, Removed: []string{"Lock:/a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
