package chaingraph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/chaingraph"
	"github.com/millrace/millrace/shared/definition"
)

// graph returns the graph of the chain /c in a document of testdata.
func graph(t *testing.T, name string) *definition.Graph {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	set, err := definition.Read(name, text)
	if err != nil {
		t.Fatal(err)
	}
	g, err := set.Graph("/c")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestDrawings compares the drawings of the chains in testdata, NAME.yaml, with NAME.txt and NAME.mmd.
func TestDrawings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no chains: %v", err)
	}
	for _, file := range files {
		g := graph(t, filepath.Base(file))
		for ending, got := range map[string]string{".txt": chaingraph.Text(g), ".mmd": chaingraph.Mermaid(g)} {
			path := strings.TrimSuffix(file, ".yaml") + ending
			want, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%v; it should be\n%s", err, got)
				continue
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
}
